"""Find the kernels of a source file from its syntax tree, without running anything."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from pipelines.trace import Model

MAX_KERNELS = 500

_JIT = ("triton.jit", "jit", "triton.language.jit", "gluon.jit")
_TUNERS = ("triton.autotune", "autotune")


class FoundArgument(Model):
    """A parameter as written; ``default`` is its source text."""

    name: str
    annotation: str
    constexpr: bool
    default: str | None


class FoundKernel(Model):
    """A function with Triton's decorator; a ``helper`` is called by another kernel and never launched."""

    name: str
    line: int
    arguments: tuple[FoundArgument, ...]
    autotuned: bool
    helper: bool
    launched: bool


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
            tree = ast.parse(source)
    except SyntaxError as error:
        return _unreadable(error.msg, error.lineno, error.offset)
    except (ValueError, RecursionError, MemoryError) as error:
        return _unreadable(str(error) or "the source is nested too deeply", None, None)
    try:
        return _discover(tree)
    except RecursionError:
        return _unreadable("the source is nested too deeply", None, None)


def _unreadable(message: str, line: int | None, column: int | None) -> Discovery:
    return Discovery(kernels=(), launches=False, error=SourceFault(message=message, line=line, column=column))


def _discover(tree: ast.Module) -> Discovery:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _is_kernel(node)]
    functions.sort(key=lambda node: node.lineno)
    names = {node.name for node in functions}
    launched = {name for name in _launched(tree) if name in names}
    called = {name for node in functions for name in _called(node) if name in names and name != node.name}
    kernels = tuple(
        FoundKernel(
            name=node.name,
            line=node.lineno,
            arguments=tuple(_arguments(node.args)),
            autotuned=any(_decorator(d) in _TUNERS for d in node.decorator_list),
            helper=node.name in called and node.name not in launched,
            launched=node.name in launched,
        )
        for node in functions[:MAX_KERNELS]
    )
    return Discovery(kernels=kernels, launches=bool(launched), error=None)


def _is_kernel(node: ast.FunctionDef) -> bool:
    return any(_decorator(item) in _JIT for item in node.decorator_list)


def _decorator(node: ast.expr) -> str:
    return _dotted(node.func if isinstance(node, ast.Call) else node)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


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
