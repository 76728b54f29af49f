"""Find the kernels of a source file from its syntax tree, without running anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipelines.kernels.decorators import read_heuristics, read_tuning, text_of
from pipelines.kernels.found import Discovery, FoundArgument, FoundKernel, ImportedKernel, SourceFault
from pipelines.kernels.guess import Context, guess_arguments
from pipelines.kernels.inductor.source import embedded, is_declared
from pipelines.kernels.syntax import (
    GLUON_JIT,
    HEURISTICS,
    JITS,
    TUNERS,
    File,
    Package,
    Read,
    dotted,
    parse,
    resolve,
    scoped,
)
from pipelines.kernels.usage import Reader

__all__ = ["MAX_KERNELS", "Discovery", "FoundKernel", "Reading", "discover"]

MAX_KERNELS = 500
MAX_HELD = 16
MAX_IMPORTED = 100

LAUNCHERS = ("warmup", "run")


class Reading:
    """A package's files, and what has been learnt of their functions: shared by all that ``discover`` is asked for."""

    def __init__(self, read: Read = lambda _: None) -> None:
        self.package = Package(read)
        self.reader = Reader()


def discover(source: str, file: str = "kernel.py", reading: Reading | None = None) -> Discovery:
    """Return the kernels in the order in which they are written; a source that does not parse gives its fault.

    Args:
        source: the file's text.
        file: its path in its package.
        reading: the package's other files, through whose helpers arguments are followed.
    """
    reading = reading or Reading()
    try:
        tree = parse(source)
        found = _discover(File(tree, file, reading.package), reading.reader)
        return _with_embedded(found, tree, file, reading)
    except SyntaxError as error:
        return _unreadable(error.msg, error.lineno, error.offset)
    except ValueError as error:
        return _unreadable(str(error), None, None)
    except RecursionError:
        return _unreadable("the source is nested too deeply", None, None)


def _unreadable(message: str, line: int | None, column: int | None) -> Discovery:
    return Discovery(kernels=(), launches=False, error=SourceFault(message=message, line=line, column=column))


def _with_embedded(found: Discovery, tree: ast.Module, file: str, reading: Reading) -> Discovery:
    """Add the kernels that a file of TorchInductor's holds as texts, at their lines of the file."""
    kernels = list(found.kernels)
    for item in embedded(tree):
        before = item.line - 1
        try:
            inner = _discover(File(parse(item.text), file, reading.package), reading.reader)
        except SyntaxError as error:
            error.lineno = (error.lineno or 1) + before
            raise
        kernels += [kernel.model_copy(update={"line": kernel.line + before}) for kernel in inner.kernels]
    launches = found.launches or any(kernel.declared for kernel in kernels)
    return found.model_copy(update={"kernels": tuple(kernels[:MAX_KERNELS]), "launches": launches})


@dataclass
class _Made:
    """A function that is a kernel, with all that decorates it and the variables that hold it."""

    node: ast.FunctionDef
    around: tuple[ast.AST, ...]
    decorators: list[ast.expr]
    held: list[str] = field(default_factory=list)


def _discover(file: File, reader: Reader) -> Discovery:
    functions = list(scoped(file.tree))
    found = {
        id(node): _Made(node, around, list(node.decorator_list))
        for node, around in functions
        if any(resolve(item, file.names) in JITS for item in node.decorator_list)
    }
    _add_assigned(file, functions, found)
    made = sorted(found.values(), key=lambda item: item.node.lineno)[:MAX_KERNELS]
    known = {name for item in made for name in (item.node.name, *item.held)}
    launched_names = set(launched_in(file.tree))
    launched = known & launched_names
    called = {name for item in made for name in _called(item.node) if name in known and name != item.node.name}
    roles = _Roles(launched, called, {item.node.name: len(item.node.args.args) for item in made})
    return Discovery(
        kernels=tuple(_kernel(item, file, reader, roles) for item in made),
        launches=bool(launched),
        error=None,
        imported=tuple(_imported_kernels(launched_names - known, file)),
    )


def _add_assigned(
    file: File, functions: list[tuple[ast.FunctionDef, tuple[ast.AST, ...]]], found: dict[int, _Made]
) -> None:
    """Add ``k = triton.jit(f)``, ``k = triton.autotune(...)(triton.jit(f))`` and the like."""
    by_name = {node.name: (node, around) for node, around in functions}
    holders: dict[str, _Made] = {}
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        decorators, inner = _unwrap(node.value, file)
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if inner is None or not names:
            continue
        made = holders.get(inner)
        if made is None and inner in by_name:
            function, around = by_name[inner]
            jitted = any(resolve(item, file.names) in JITS for item in decorators)
            made = found.get(id(function)) or (_Made(function, around, []) if jitted else None)
        if made is None:
            continue
        found[id(made.node)] = made
        made.decorators[:0] = decorators
        made.held += [name for name in names if name not in (made.node.name, *made.held)][: MAX_HELD - len(made.held)]
        holders |= dict.fromkeys(names, made)


def _unwrap(call: ast.Call, file: File) -> tuple[list[ast.expr], str | None]:
    """Return the decorators that a call applies, the outermost first, and the name of what it applies them to."""
    decorators: list[ast.expr] = []
    node: ast.expr = call
    while isinstance(node, ast.Call):
        name = resolve(node, file.names)
        if name in ("functools.partial", "partial") and node.args:
            inner = node.args[0]
        elif (
            isinstance(node.func, ast.Call) and len(node.args) == 1 and resolve(node.func, file.names) in _WRAPPERS
        ) or (name in JITS and node.args):
            decorators.append(node.func)
            inner = node.args[0]
        else:
            return [], None
        node = inner
    return decorators, node.id if isinstance(node, ast.Name) else None


_WRAPPERS = frozenset((*JITS, *TUNERS, *HEURISTICS))


@dataclass(frozen=True)
class _Roles:
    launched: set[str]
    called: set[str]
    arities: dict[str, int]


def _kernel(made: _Made, file: File, reader: Reader, roles: _Roles) -> FoundKernel:
    node, names = made.node, {made.node.name, *made.held}
    marks = {resolve(item, file.names) for item in made.decorators}
    declared = is_declared(node)
    launched = declared or not names.isdisjoint(roles.launched)
    helper = not launched and (not names.isdisjoint(roles.called) or _returns(node))
    tuning = read_tuning(made.decorators, file)
    heuristics = read_heuristics(made.decorators, file)
    arities = {name: count for name, count in roles.arities.items() if name in roles.called or name not in names}
    context = Context(reader.read(file, node), tuning, heuristics, arities)
    arguments = guess_arguments(tuple(_arguments(node.args)), context)
    return FoundKernel(
        name=node.name,
        line=node.lineno,
        arguments=arguments,
        autotuned=not marks.isdisjoint(TUNERS),
        helper=helper,
        launched=launched,
        gluon=not marks.isdisjoint(GLUON_JIT),
        declared=declared,
        within=".".join(_name(item) for item in made.around) or None,
        nested=any(not isinstance(item, ast.ClassDef) for item in made.around),
        held=tuple(made.held),
        tuning=tuning,
        heuristics=heuristics,
    )


def _returns(function: ast.FunctionDef) -> bool:
    """Say whether a function gives a value back, which no kernel can."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            return not (isinstance(node.value, ast.Constant) and node.value.value is None)
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef):
            waiting += ast.iter_child_nodes(node)
    return False


def _name(node: ast.AST) -> str:
    name: str = getattr(node, "name", "")
    return f"{name}()" if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else name


def _arguments(arguments: ast.arguments) -> Iterator[FoundArgument]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    pairs: list[tuple[ast.arg, ast.expr | None]] = [*zip(positional, defaults, strict=True)]
    if arguments.vararg:
        pairs.append((ast.arg("*" + arguments.vararg.arg, arguments.vararg.annotation), None))
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    for argument, default in pairs:
        annotation = text_of(argument.annotation) if argument.annotation else ""
        yield FoundArgument(
            name=argument.arg,
            annotation=annotation,
            constexpr="constexpr" in annotation,
            default=text_of(default) if default else None,
        )


def launched_in(tree: ast.Module) -> Iterator[str]:
    """Yield the last part of what is called as ``kernel[grid](...)`` or ``kernel.warmup(...)``."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        target = node.func
        if isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and target.attr in LAUNCHERS):
            name = dotted(target.value)
            if name:
                yield name.rpartition(".")[2] if isinstance(target, ast.Subscript) else name


def _called(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names a kernel refers to: helpers are called, and combine functions are passed by name."""
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node.id


def _imported_kernels(launched: set[str], file: File) -> Iterator[ImportedKernel]:
    """Yield what is launched and imported: its arguments are in another file."""
    for name in sorted(launched)[:MAX_IMPORTED]:
        module, _, attribute = file.names.get(name, "").rpartition(".")
        if module and attribute and not module.startswith("triton"):
            yield ImportedKernel(name=name, module=module)
