"""Launches from arguments that the user gave, in place of launch code. Runs inside the confined child."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from triton import knobs
from triton._utils import find_paths_if, get_iterable_path
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction, create_function_from_signature

from pipelines.kernels.capture import Launch
from pipelines.kernels.signature import SignatureError, parse_argument
from pipelines.triton_path.errors import UserError, words
from pipelines.triton_path.running import Ran
from pipelines.triton_path.values import parse_constant


@dataclass
class _Bound:
    """A signature while it is put together."""

    signature: dict[str, Any] = field(default_factory=dict)
    constexprs: dict[tuple[int, ...], Any] = field(default_factory=dict)
    attributes: dict[tuple[int, ...], Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Kernel:
    """A kernel with what its decorators add: autotune configs, and heuristics in the order in which they are asked."""

    function: Any
    configs: tuple[Any, ...]
    heuristics: dict[str, Any]


def given_launches(ran: Ran, request: dict[str, Any], backend: Any) -> list[Launch]:
    """Return one launch, or one for each autotune config of the kernel.

    Raises:
        UserError: no such kernel, or arguments missing, unknown or malformed.
    """
    kernel = _find(ran, request["kernel"], {*request["arguments"], *request["constexprs"]})
    function = kernel.function
    given = {name: parse_constant(name, value, ran.namespace) for name, value in request["constexprs"].items()}
    check_names(function, [*request["arguments"], *given])
    launches = []
    for config in kernel.configs or (None,):
        tuned = dict(config.all_kwargs()) if config else {}
        constants = {**{name: value for name, value in tuned.items() if name in function.arg_names}, **given}
        bound = _bind(kernel, request["arguments"], constants, backend)
        options = {
            **backend.parse_options({}).__dict__,
            "debug": bool(function.debug or knobs.runtime.debug),
            **{name: value for name, value in tuned.items() if name not in function.arg_names},
        }
        made = (bound.signature, bound.constexprs, bound.attributes, options, tuned or None)
        launches.append(Launch(function, *made))
    return launches


def is_named(function: Any, name: str, namespace: Mapping[str, Any]) -> bool:
    """Say whether a kernel is meant by a name: its function's, or that of the variable that holds it."""
    held = namespace.get(name)
    return function.__name__ == name or (is_kernel(held) and _unwrap(held).function is function)


def is_kernel(value: Any) -> bool:
    """Say whether a value is a kernel, decorated or not."""
    return isinstance(value, JITFunction | Autotuner | Heuristics)


def check_names(function: Any, names: list[str]) -> None:
    """Raise UserError for a name that is no argument of the kernel's."""
    unknown = [name for name in names if name not in function.arg_names]
    if unknown:
        raise UserError(f"{function.__name__} has no argument {unknown[0]!r}; it has {', '.join(function.arg_names)}")


def _find(ran: Ran, name: str | None, given: set[str]) -> _Kernel:
    kernels: dict[str, _Kernel] = {}
    for namespace in ran.namespaces:
        kernels |= {k: _unwrap(value) for k, value in list(namespace.items()) if k not in kernels and is_kernel(value)}
    files = {key: kernel.function.fn.__code__.co_filename for key, kernel in kernels.items()}
    own = {key: kernel for key, kernel in kernels.items() if files[key] == ran.file}
    if name is not None or not own:
        own |= {key: kernel for key, kernel in kernels.items() if files[key] in ran.own}
    if name is not None:
        found = [kernels[name]] if name in kernels else []
        found += [kernel for kernel in own.values() if kernel.function.__name__ == name]
        if found:
            return found[0]
    elif len(own) == 1:
        return next(iter(own.values()))
    else:
        fitting = [kernel for kernel in own.values() if given <= set(kernel.function.arg_names)]
        if len(fitting) == 1:
            return fitting[0]
    raise _not_found(ran, name, list(own))


def refuse_interpreted(ran: Ran) -> None:
    """Raise UserError where the source's kernels are the interpreter's: told by name, whose module starts threads."""
    if any(type(value).__name__ == "InterpretedFunction" for value in list(ran.namespace.values())):
        raise UserError("the source turns Triton's interpreter on, whose kernels are not compiled; leave that out")


def _not_found(ran: Ran, name: str | None, own: list[str]) -> UserError:
    refuse_interpreted(ran)
    if isinstance(ran.error, SystemExit) and not own:
        return UserError("the source ends its own process (sys.exit) before it defines a kernel")
    has = ", ".join(own) or "none"
    if name is None:
        return UserError(f"say which kernel to compile: the source has {has}")
    return UserError(f"the source has no kernel {name!r}; it has {has}")


def _unwrap(kernel: Any) -> _Kernel:
    configs: tuple[Any, ...] = ()
    heuristics: dict[str, Any] = {}
    while not isinstance(kernel, JITFunction):
        if isinstance(kernel, Autotuner):
            configs = tuple(kernel.configs)
        elif isinstance(kernel, Heuristics):
            heuristics |= kernel.values
        kernel = kernel.fn
    return _Kernel(kernel, configs, heuristics)


def _bind(kernel: _Kernel, given: dict[str, str], constants: dict[str, Any], backend: Any) -> _Bound:
    bound = _Bound()
    function = kernel.function
    known = _with_heuristics(kernel, constants, given)
    missing: list[str] = []
    for index, parameter in enumerate(function.params):
        name = parameter.name
        if function.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            raise UserError(f"*{name} takes any number of values, which cannot be given: use launch code")
        if name in given and name not in constants and not parameter.is_constexpr:
            _bind_type(index, name, given[name], bound)
        elif name in known:
            bound.signature[name], bound.constexprs[(index,)] = "constexpr", known[name]
        elif parameter.has_default:
            _bind_default(index, parameter, function.signature.parameters[name], bound, backend)
        else:
            missing.append(name)
    if missing:
        raise UserError(
            f"{function.__name__} needs {', '.join(missing)}: give a type such as {missing[0]}=*fp16:16 "
            f"or {missing[0]}=i32, or a constexpr's value"
        )
    return bound


def _with_heuristics(kernel: _Kernel, constants: dict[str, Any], given: dict[str, str]) -> dict[str, Any]:
    """Add what heuristics make of the values before them; those that were given stay as they are."""
    known = dict(constants)
    defaults = {
        parameter.name: parameter.default
        for parameter in kernel.function.params
        if parameter.has_default and parameter.name not in given
    }
    for name, heuristic in kernel.heuristics.items():
        if name in known:
            continue
        try:
            known[name] = heuristic({**defaults, **known})
        except MemoryError:
            raise
        except Exception as error:  # a heuristic may read any argument, whose values are not known here
            raise UserError(
                f"give {name}: its heuristic needs values that are not known: {type(error).__name__}: {words(error)}"
            ) from error
    return known


def _bind_default(index: int, parameter: Any, written: inspect.Parameter, bound: _Bound, backend: Any) -> None:
    """Specialize a parameter's default as a launch that leaves it out would."""
    alone = inspect.Signature([written.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    binder = create_function_from_signature(alone, [parameter], backend)
    values, [(kind, attribute)], _ = binder()
    bound.signature[parameter.name] = kind
    value = values[parameter.name]
    for path in find_paths_if([kind], lambda _, item: item == "constexpr"):
        bound.constexprs[(index, *path[1:])] = get_iterable_path([value], path)
    attributes = "" if kind == "constexpr" else attribute
    for path in find_paths_if([attributes], lambda _, item: isinstance(item, str)):
        parsed = backend.parse_attr(get_iterable_path([attributes], path))
        if parsed:
            bound.attributes[(index, *path[1:])] = parsed


def _bind_type(index: int, name: str, text: str, bound: _Bound) -> None:
    try:
        argument = parse_argument(name, text)
    except SignatureError as error:
        raise UserError(str(error)) from None
    bound.signature[name] = argument.type or "constexpr"
    if argument.type is None:
        bound.constexprs[(index,)] = None
    if argument.divisibility:
        bound.attributes[(index,)] = [["tt.divisibility", argument.divisibility]]
