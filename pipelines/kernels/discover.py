"""Find the kernels of a source file from its syntax tree, without running anything."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from pipelines.trace import Model

MAX_KERNELS = 500

_TRITON_JIT = ("triton.jit", "triton.runtime.jit", "triton.runtime.jit.jit", "triton.language.jit")
_GLUON_JIT = ("triton.experimental.gluon.jit", "triton.experimental.gluon._runtime.jit")
_TUNERS = ("triton.autotune", "triton.runtime.autotune", "triton.runtime.autotuner.autotune")

# What a fragment without imports means.
_USUAL = {
    "jit": "triton.jit",
    "autotune": "triton.autotune",
    "gluon": "triton.experimental.gluon",
}


class FoundArgument(Model):
    """A parameter as written; ``default`` is its source text."""

    name: str
    annotation: str
    constexpr: bool
    default: str | None


class FoundKernel(Model):
    """A function with Triton's decorator, or Gluon's; a ``helper`` is called by another kernel and never launched."""

    name: str
    line: int
    arguments: tuple[FoundArgument, ...]
    autotuned: bool
    helper: bool
    launched: bool
    gluon: bool


class SourceFault(Model):
    """Why a source cannot be read; line and column count from 1."""

    message: str
    line: int | None
    column: int | None


class Discovery(Model):
    """The kernels of a source; ``launches`` where its own code launches one."""

    kernels: tuple[FoundKernel, ...]
    launches: bool
    error: SourceFault | None


def discover(source: str) -> Discovery:
    """Return the kernels in the order in which they are written; a source that does not parse gives its fault."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.removeprefix("\ufeff"))
    except SyntaxError as error:
        return _unreadable(error.msg, error.lineno, error.offset)
    except ValueError as error:
        return _unreadable(str(error), None, None)
    except (RecursionError, MemoryError):
        return _unreadable(_TOO_DEEP, None, None)
    try:
        return _discover(tree)
    except RecursionError:
        return _unreadable(_TOO_DEEP, None, None)


_TOO_DEEP = "the source is nested too deeply"


def _unreadable(message: str, line: int | None, column: int | None) -> Discovery:
    return Discovery(kernels=(), launches=False, error=SourceFault(message=message, line=line, column=column))


def _discover(tree: ast.Module) -> Discovery:
    names = _imported(tree)
    decorated = [
        (node, {_resolve(item, names) for item in node.decorator_list})
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    ]
    found = [(node, marks) for node, marks in decorated if not marks.isdisjoint((*_TRITON_JIT, *_GLUON_JIT))]
    found.sort(key=lambda item: item[0].lineno)
    known = {node.name for node, _ in found}
    launched = known.intersection(_launched(tree))
    called = {name for node, _ in found for name in _called(node) if name in known and name != node.name}
    kernels = tuple(
        FoundKernel(
            name=node.name,
            line=node.lineno,
            arguments=tuple(_arguments(node.args)),
            autotuned=not marks.isdisjoint(_TUNERS),
            helper=node.name in called and node.name not in launched,
            launched=node.name in launched,
            gluon=not marks.isdisjoint(_GLUON_JIT),
        )
        for node, marks in found[:MAX_KERNELS]
    )
    return Discovery(kernels=kernels, launches=bool(launched), error=None)


def _imported(tree: ast.Module) -> dict[str, str]:
    """Return what each imported name stands for: ``tr`` is ``triton`` after ``import triton as tr``."""
    names = dict(_USUAL)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                root = item.name.partition(".")[0]
                names[item.asname or root] = item.name if item.asname else root
        elif isinstance(node, ast.ImportFrom):
            for item in node.names:
                names[item.asname or item.name] = f"{'.' * node.level}{node.module or ''}.{item.name}"
    return names


def _resolve(decorator: ast.expr, names: dict[str, str]) -> str:
    """Return a decorator's full name, without its arguments."""
    dotted = _dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
    first, dot, rest = dotted.partition(".")
    return names.get(first, first) + dot + rest


def _dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` of an attribute's access by names alone, else an empty text."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _arguments(arguments: ast.arguments) -> Iterator[FoundArgument]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [*zip(positional, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    for argument, default in pairs:
        annotation = ast.unparse(argument.annotation) if argument.annotation else ""
        yield FoundArgument(
            name=argument.arg,
            annotation=annotation,
            constexpr="constexpr" in annotation,
            default=ast.unparse(default) if default else None,
        )


def _launched(tree: ast.Module) -> Iterator[str]:
    """Yield what is called as ``kernel[grid](...)`` or ``kernel.warmup(...)``."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        target = node.func
        if (isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)) or (
            isinstance(target, ast.Attribute)
            and target.attr in ("warmup", "run")
            and isinstance(target.value, ast.Name)
        ):
            yield target.value.id


def _called(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names a kernel refers to: helpers are called, and combine functions are passed by name."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
