"""Launches from arguments that the user gave, in place of launch code. Runs inside the confined child."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from triton import knobs
from triton._utils import find_paths_if, get_iterable_path
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction, create_function_from_signature

from pipelines.kernels.capture import Launch
from pipelines.kernels.found import Guess
from pipelines.kernels.signature import ArgumentType, SignatureError, parse_argument
from pipelines.triton_path.errors import UserError, out_of_memory, words
from pipelines.triton_path.guessing import Guesses, Watched, guessed_constant, plausible
from pipelines.triton_path.running import Ran
from pipelines.triton_path.values import parse_constant


@dataclass
class _Bound:
    """A signature while it is put together; ``guessed`` says by name what was guessed, and why."""

    signature: dict[str, Any] = field(default_factory=dict)
    constexprs: dict[tuple[int, ...], Any] = field(default_factory=dict)
    attributes: dict[tuple[int, ...], Any] = field(default_factory=dict)
    has_ranges: bool = False  # whether the back end knows of a pointer's range
    guessed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Kernel:
    """A kernel with what its decorators add: autotune configs, and heuristics in the order in which they are asked."""

    function: Any
    configs: tuple[Any, ...]
    heuristics: dict[str, Any]


@dataclass(frozen=True)
class _Given:
    """What a request gives: types by argument, constexprs' values, and what fills the rest."""

    types: dict[str, str]
    constants: dict[str, Any]
    guesses: dict[str, Guess]
    namespace: Mapping[str, Any]


def given_launches(ran: Ran, request: dict[str, Any], backend: Any) -> tuple[list[Launch], dict[str, UserError]]:
    """Return a launch for each kernel that is meant, and for each of its autotune configs; and, by name, why not.

    What is not given is guessed, and the launch says so.

    Raises:
        UserError: no such kernel, or arguments unknown, malformed, or not to be guessed.
    """
    types = request["arguments"] or {}
    constants = {name: parse_constant(name, value, ran.namespace) for name, value in request["constexprs"].items()}
    guesses = Guesses()
    kernels = _find(ran, request["kernel"], {*types, *constants}, guesses)
    launches: list[Launch] = []
    refused: dict[str, UserError] = {}
    for kernel in kernels:
        given = _Given(types, constants, guesses.of(kernel.function), ran.namespace)
        try:
            launches += _launches(kernel, given, backend)
        except UserError as error:  # of several kernels those that can be guessed are compiled
            refused[kernel.function.__name__] = error
    if not launches:
        raise next(iter(refused.values()))
    return launches, refused


def _launches(kernel: _Kernel, given: _Given, backend: Any) -> Iterator[Launch]:
    function = kernel.function
    check_names(function, [*given.types, *given.constants])
    for config in kernel.configs or (None,):
        tuned = dict(config.all_kwargs()) if config else {}
        constants = {name: value for name, value in tuned.items() if name in function.arg_names} | given.constants
        bound = _bind(kernel, given, constants, backend)
        options = {
            **backend.parse_options({}).__dict__,
            "debug": bool(function.debug or knobs.runtime.debug),
            **{name: value for name, value in tuned.items() if name not in function.arg_names},
        }
        made = (bound.signature, bound.constexprs, bound.attributes, options, tuned or None)
        yield Launch(function, *made, guessed=bound.guessed)


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


def _find(ran: Ran, name: str | None, given: set[str], guesses: Guesses) -> list[_Kernel]:
    """Return the kernels that are meant: the one named, else those that have the given arguments, helpers left out."""
    kernels = own_kernels(ran, name)
    if name is not None:
        held = next((space[name] for space in ran.namespaces if is_kernel(space.get(name))), None)
        found = [_unwrap(held)] if held is not None else [kernels[name]] if name in kernels else []
        found += [kernel for kernel in kernels.values() if kernel.function.__name__ == name]
        if found:
            return found[:1]
        raise _not_found(ran, name, list(kernels), guesses)
    distinct = {id(kernel.function): kernel for kernel in kernels.values()}
    whole = [kernel for kernel in distinct.values() if not _is_helper(kernel.function, guesses)]
    fitting = [kernel for kernel in whole or distinct.values() if given <= set(kernel.function.arg_names)]
    if len(distinct) == 1:
        return list(distinct.values())
    if not fitting or (given and len(fitting) > 1):
        raise _not_found(ran, name, list(kernels), guesses)
    return fitting


def own_kernels(ran: Ran, name: str | None = None) -> dict[str, _Kernel]:
    """Return the kernels that the source's first file defines, by variable; those of a class as ``Class.name``.

    Where a ``name`` is looked for, or that file has none, those of the package's other files are among them.
    """
    values: dict[str, Any] = {}
    for namespace in ran.namespaces:
        values = _held(namespace) | values
    kernels = {key: _unwrap(value) for key, value in values.items() if is_kernel(value)}
    files = {key: kernel.function.fn.__code__.co_filename for key, kernel in kernels.items()}
    own = {key: kernel for key, kernel in kernels.items() if files[key] == ran.file}
    if name is not None or not own:
        own |= {key: kernel for key, kernel in kernels.items() if files[key] in ran.own}
    return own


def _held(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a module holds, and what its own classes do."""
    values = dict(namespace)
    for key, value in list(values.items()):
        if isinstance(value, type) and value.__module__ == namespace.get("__name__"):
            inner = ((name, getattr(item, "__func__", item)) for name, item in list(vars(value).items()))
            values |= {f"{key}.{name}": item for name, item in inner if is_kernel(item)}
    return values


def _is_helper(function: Any, guesses: Guesses) -> bool:
    found = guesses.found(function)
    return found is not None and found.helper


def undefined_kernels(ran: Ran) -> list[str]:
    """Return the kernels that the source would define at its top level, and did not come to."""
    defined = {kernel.function.def_file_line_number for kernel in own_kernels(ran).values()}
    kernels = Guesses().file(ran.file).kernels
    return [k.name for k in kernels if not k.nested and not k.helper and k.line not in defined]


def refuse_interpreted(ran: Ran) -> None:
    """Raise UserError where the source's kernels are the interpreter's: told by name, whose module starts threads."""
    if any(type(value).__name__ == "InterpretedFunction" for value in list(ran.namespace.values())):
        raise UserError("the source turns Triton's interpreter on, whose kernels are not compiled; leave that out")


def _not_found(ran: Ran, name: str | None, own: list[str], guesses: Guesses) -> UserError:
    refuse_interpreted(ran)
    if isinstance(ran.error, SystemExit) and not own:
        return UserError("the source ends its own process (sys.exit) before it defines a kernel")
    has = ", ".join(own) or "none"
    if name is None:
        return UserError(f"say which kernel to compile: the source has {has}")
    within = next((k.within for k in guesses.file(ran.file).kernels if k.name == name and k.nested), None)
    if within:
        return UserError(
            f"{name} is defined inside {within}, and there is none before that runs: call it in the source and keep "
            f"the kernel in a variable, such as {name} = {within.partition('.')[0]}"
        )
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


def _bind(kernel: _Kernel, given: _Given, constants: dict[str, Any], backend: Any) -> _Bound:
    bound = _Bound(has_ranges=backend.target.backend == "hip")
    function = kernel.function
    known = dict(constants)
    _guess_constants(kernel, given, known, bound)
    _run_heuristics(kernel, given, known, bound)
    missing: list[str] = []
    for index, parameter in enumerate(function.params):
        name = parameter.name
        guess = given.guesses.get(name)
        if function.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            raise UserError(f"*{name} takes any number of values, which cannot be given: use launch code")
        if name in given.types and name not in constants and not parameter.is_constexpr:
            _bind_type(index, name, given.types[name], bound)
        elif name in known:
            bound.signature[name], bound.constexprs[(index,)] = "constexpr", known[name]
        elif parameter.has_default:
            _bind_default(index, parameter, function.signature.parameters[name], bound, backend)
        elif guess and guess.kind == "type":
            _bind_type(index, name, guess.value, bound)
            bound.guessed[name] = f"{guess.value} ({guess.why})"
        else:
            missing.append(name)
    if missing:
        raise UserError(
            f"{function.__name__} needs {', '.join(missing)}: give a type such as {missing[0]}=*fp16:16 "
            f"or {missing[0]}=i32, or a constexpr's value"
        )
    return bound


def _guess_constants(kernel: _Kernel, given: _Given, known: dict[str, Any], bound: _Bound) -> None:
    """Add the guessed values of constexprs that are neither known nor filled by a default or a heuristic."""
    for parameter in kernel.function.params:
        name, guess = parameter.name, given.guesses.get(parameter.name)
        certain = parameter.has_default or name in known or name in kernel.heuristics
        if parameter.is_constexpr and guess is not None and not certain:
            _guess_constant(name, guess, given, known, bound)


def _guess_constant(name: str, guess: Guess, given: _Given, known: dict[str, Any], bound: _Bound) -> None:
    with suppress(ValueError):  # what is no literal stays unknown, and is asked for
        known[name] = guessed_constant(name, guess, given.namespace)
        bound.guessed[name] = f"{guess.value} ({guess.why})"


def _run_heuristics(kernel: _Kernel, given: _Given, known: dict[str, Any], bound: _Bound) -> None:
    """Add what heuristics make of the values before them; those that were given stay as they are.

    A heuristic that reads what is not known gets a plausible value, and its own is then a guess, too.
    """
    defaults = {p.name: p.default for p in kernel.function.params if p.has_default and p.name not in given.types}
    types = {name: guess.value for name, guess in given.guesses.items() if guess.kind == "type"} | given.types
    plausibles = {name: plausible(text) for name, text in types.items()}
    for name, heuristic in kernel.heuristics.items():
        if name in known:
            continue
        certain = {key: value for key, value in {**defaults, **known}.items() if key not in bound.guessed}
        values = Watched(certain, {**plausibles, **known})
        try:
            known[name] = heuristic(values)
        except MemoryError:
            raise
        except Exception as error:  # a heuristic may read any argument, whose values are not known here
            if out_of_memory(error):
                raise
            why = f"its heuristic needs values that are not known: {type(error).__name__}: {words(error)}"
            guess = given.guesses.get(name)
            if guess is not None:
                _guess_constant(name, guess.model_copy(update={"why": why}), given, known, bound)
            if name not in known:
                raise UserError(f"give {name}: {why}") from error
        else:
            if values.read:
                bound.guessed[name] = f"{known[name]} (its heuristic, of {', '.join(sorted(values.read))})"


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
    bound.signature[name] = _bind_member((index,), argument, bound)


def _bind_member(path: tuple[int, ...], argument: ArgumentType, bound: _Bound) -> Any:
    """Return the type as Triton has it, a tuple's with those of its elements."""
    if argument.members:
        return tuple(_bind_member((*path, at), member, bound) for at, member in enumerate(argument.members))
    if argument.type in (None, "constexpr"):
        bound.constexprs[path] = argument.value
        return "constexpr"
    promises = [["tt.divisibility", argument.divisibility], ["tt.pointer_range", argument.pointer_range]]
    kept = [promise for promise in promises[: 2 if bound.has_ranges else 1] if promise[1]]
    if kept:
        bound.attributes[path] = kept
    return argument.type
