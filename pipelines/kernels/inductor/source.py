"""Find Inductor's kernels in a source's syntax tree, and cut the source down to them. Nothing is run here.

A file that Inductor wrote is a program: it imports torch's internals, allocates buffers and calls the kernels. What
makes the kernels is only their imports, their functions, and the texts given to ``async_compile.triton``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

HEURISTICS = "triton_heuristics"
# What kernels of earlier releases import from Triton and it no longer has; ``hints`` stands for it.
REMOVED = ("AttrsDescriptor", "instance_descriptor")
_COMPILES = ("async_compile", "triton")


@dataclass(frozen=True)
class Embedded:
    """A kernel that the file holds as text: its variable, the text, and the file's line on which the text begins."""

    name: str
    text: str
    line: int


def is_output(tree: ast.Module) -> bool:
    """Say whether a source is Inductor's output, or one kernel of it."""
    return any(is_declared(node) for node in tree.body) or next(_embedded(tree), None) is not None


def embedded(tree: ast.Module) -> list[Embedded]:
    """Return the kernels that the file holds as texts, in order."""
    return list(_embedded(tree))


def kernels_only(tree: ast.Module) -> ast.Module:
    """Return the tree with nothing but the imports and functions that make kernels, at their lines."""
    modules = ("triton", "math", "torch._inductor") if any(map(is_declared, tree.body)) else ("triton", "math")
    return ast.Module([node for node in tree.body if _is_kept(node, modules)], type_ignores=[])


def _embedded(tree: ast.Module) -> Iterator[Embedded]:
    for node in tree.body:
        call = node.value if isinstance(node, ast.Assign) else None
        if not isinstance(call, ast.Call) or not _is_compile(call.func) or len(call.args) < 2:
            continue
        name, text = call.args[:2]
        if _is_text(name) and _is_text(text):
            held = node.targets[0] if isinstance(node, ast.Assign) else None
            variable = held.id if isinstance(held, ast.Name) else ast.literal_eval(name)
            yield Embedded(variable, ast.literal_eval(text), text.lineno)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_compile(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == _COMPILES[1]
        and isinstance(node.value, ast.Name)
        and node.value.id == _COMPILES[0]
    )


def is_declared(node: ast.stmt) -> bool:
    """Say whether a statement is a kernel whose decorator carries its signature."""
    if not isinstance(node, ast.FunctionDef):
        return False
    calls = [item.func for item in node.decorator_list if isinstance(item, ast.Call)]
    return any(
        isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id == HEURISTICS for f in calls
    )


def _is_kept(node: ast.stmt, modules: tuple[str, ...]) -> bool:
    if isinstance(node, ast.Import):
        return all(_is_of(item.name, modules) for item in node.names)
    if isinstance(node, ast.ImportFrom):
        removed = all(item.name in REMOVED for item in node.names)
        return node.level == 0 and _is_of(node.module or "", modules) and not removed
    return isinstance(node, ast.FunctionDef) and bool(node.decorator_list)


def _is_of(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)
