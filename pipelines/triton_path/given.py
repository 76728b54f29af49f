"""Launches from arguments that the user gave, in place of launch code. Runs inside the confined child."""

from __future__ import annotations

import re
from typing import Any

import triton.language as tl
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

from pipelines.kernels.capture import Launch
from pipelines.kernels.signature import SignatureError, parse_argument
from pipelines.triton_path.errors import UserError


def given_launches(namespace: dict[str, Any], request: dict[str, Any], backend: Any) -> list[Launch]:
    """Return one launch, or one for each autotune config of the kernel.

    Raises:
        UserError: no such kernel, or arguments missing, unknown or malformed.
    """
    decorated = _kernel(namespace, request["kernel"], {*request["arguments"], *request["constexprs"]})
    configs, heuristics, function = _unwrap(decorated)
    options = backend.parse_options({})
    launches = []
    for config in configs or [None]:
        tuned = config.all_kwargs() if config else {}
        constants = {
            **{k: v for k, v in tuned.items() if k in function.arg_names},
            **_constants(request["constexprs"]),
        }
        signature, constexprs, attributes = _bind(function, request["arguments"], constants, heuristics)
        tuned_options = {k: v for k, v in tuned.items() if k not in function.arg_names}
        named = str(config) if config else None
        launches.append(
            Launch(function, signature, constexprs, attributes, {**options.__dict__, **tuned_options}, named)
        )
    return launches


def _kernel(namespace: dict[str, Any], name: str | None, given: set[str]) -> Any:
    kernels = {key: value for key, value in namespace.items() if _is_kernel(value)}
    own = {k: v for k, v in kernels.items() if _unwrap(v)[2].__module__ == namespace["__name__"]}
    if name is None:
        fitting = [k for k in own.values() if len(own) == 1 or given <= set(_unwrap(k)[2].arg_names)]
        if len(fitting) == 1:
            return fitting[0]
        raise UserError(f"say which kernel to compile: the source has {', '.join(own) or 'none'}")
    if name not in kernels:
        raise UserError(f"the source has no kernel {name!r}; it has {', '.join(own) or 'none'}")
    return kernels[name]


def _is_kernel(value: Any) -> bool:
    return isinstance(value, JITFunction | Autotuner | Heuristics)


def _unwrap(kernel: Any) -> tuple[list[Any], dict[str, Any], Any]:
    configs: list[Any] = []
    heuristics: dict[str, Any] = {}
    while not isinstance(kernel, JITFunction):
        if isinstance(kernel, Autotuner):
            configs = kernel.configs
        elif isinstance(kernel, Heuristics):
            heuristics |= kernel.values
        kernel = kernel.fn
    return configs, heuristics, kernel


def _constants(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _constant(value) for name, value in values.items()}


def _constant(value: Any) -> Any:
    """Read ``tl.float16`` as the dtype it names; JSON's lists are Triton's tuples."""
    if isinstance(value, list):
        return tuple(_constant(item) for item in value)
    named = re.fullmatch(r"tl\.(\w+)", value) if isinstance(value, str) else None
    kind = getattr(tl, named[1], None) if named else None
    return kind if isinstance(kind, tl.dtype) else value


def _bind(function: Any, given: dict[str, str], constants: dict[str, Any], heuristics: dict[str, Any]) -> Any:
    unknown = [name for name in (*given, *constants) if name not in function.arg_names]
    if unknown:
        raise UserError(f"{function.__name__} has no argument {unknown[0]!r}; it has {', '.join(function.arg_names)}")
    signature: dict[str, Any] = {}
    constexprs: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    missing: list[str] = []
    for index, parameter in enumerate(function.params):
        name = parameter.name
        if name in given and name not in constants and not parameter.is_constexpr:
            _bind_argument(index, name, given[name], (signature, constexprs, attributes))
            continue
        value = _value(parameter, constants, heuristics)
        if value is _MISSING:
            missing.append(name)
        signature[name] = "constexpr"
        constexprs[(index,)] = value
    if missing:
        raise UserError(
            f"{function.__name__} needs {', '.join(missing)}: give a type such as {missing[0]}=*fp16:16 "
            f"or {missing[0]}=i32, or a constexpr's value"
        )
    return signature, constexprs, attributes


_MISSING = object()


def _value(parameter: Any, constants: dict[str, Any], heuristics: dict[str, Any]) -> Any:
    if parameter.name in constants:
        return constants[parameter.name]
    if parameter.name in heuristics:
        try:
            return heuristics[parameter.name](dict(constants))
        except Exception as error:  # a heuristic may read any argument, whose values are not known here
            raise UserError(
                f"give {parameter.name}: its heuristic needs values that are not known: {error!r}"
            ) from error
    return parameter.default if parameter.has_default else _MISSING


def _bind_argument(index: int, name: str, text: str, into: Any) -> None:
    signature, constexprs, attributes = into
    try:
        argument = parse_argument(name, text)
    except SignatureError as error:
        raise UserError(str(error)) from None
    signature[name] = argument.type or "constexpr"
    if argument.type is None:
        constexprs[(index,)] = None
    if argument.divisibility:
        attributes[(index,)] = [["tt.divisibility", argument.divisibility]]
