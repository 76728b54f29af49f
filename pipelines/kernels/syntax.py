"""A source's syntax tree: its imports, its functions by name, and what a dotted name stands for."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

TRITON_JIT = ("triton.jit", "triton.runtime.jit", "triton.runtime.jit.jit", "triton.language.jit")
GLUON_JIT = ("triton.experimental.gluon.jit", "triton.experimental.gluon._runtime.jit")
JITS = frozenset((*TRITON_JIT, *GLUON_JIT))
TUNERS = frozenset(("triton.autotune", "triton.runtime.autotune", "triton.runtime.autotuner.autotune"))
HEURISTICS = frozenset(("triton.heuristics", "triton.runtime.heuristics", "triton.runtime.autotuner.heuristics"))
CONFIGS = frozenset(("triton.Config", "triton.runtime.Config", "triton.runtime.autotuner.Config"))

# What a fragment without imports means.
_USUAL = {
    "jit": "triton.jit",
    "autotune": "triton.autotune",
    "heuristics": "triton.heuristics",
    "gluon": "triton.experimental.gluon",
}

# From a path inside a package to that file's text, None where there is none.
Read = Callable[[str], str | None]

_MAX_FILES = 64


def parse(source: str) -> ast.Module:
    """Return the syntax tree; as ``ast.parse`` raises, with SyntaxError for what is nested too deeply, too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.removeprefix("\ufeff"))
    except (RecursionError, MemoryError):
        raise SyntaxError("the source is nested too deeply") from None


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` of an attribute's access by names alone, else an empty text."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def imported(tree: ast.Module) -> dict[str, str]:
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


def resolve(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full name of what is named or called, without its arguments."""
    name = dotted(node.func if isinstance(node, ast.Call) else node)
    first, dot, rest = name.partition(".")
    return names.get(first, first) + dot + rest


def scoped(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, tuple[ast.AST, ...]]]:
    """Yield every function in the order of its lines, with the functions and classes around it, the outermost first."""
    waiting: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, ())]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            yield node, around
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            around = (*around, node)[:16]
        waiting += [(child, around) for child in reversed(list(ast.iter_child_nodes(node)))]


class Package:
    """The files of a package; each is parsed once, however many others import it."""

    def __init__(self, read: Read = lambda _: None) -> None:
        self._read = read
        self._files: dict[str, File | None] = {}

    def open(self, path: str) -> File | None:
        """Return a file, None where there is none or it does not parse."""
        if path not in self._files:
            self._files[path] = self._parse(path)
        return self._files[path]

    def _parse(self, path: str) -> File | None:
        text = self._read(path)
        try:
            return File(parse(text), path, self) if text is not None else None
        except (SyntaxError, ValueError):
            return None


@dataclass
class File:
    """A source file with what it imports, and the other files of its package as they are asked for."""

    tree: ast.Module
    path: str = "kernel.py"
    package: Package = field(default_factory=Package)
    names: dict[str, str] = field(init=False)
    functions: dict[str, ast.FunctionDef] = field(init=False)
    assigned: dict[str, ast.expr | None] = field(init=False, default_factory=dict)
    _others: dict[str, File | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Read the imports, the functions, and what the module assigns once."""
        self.names = imported(self.tree)
        self.functions = {node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)}
        for item in self.tree.body:
            for to in item.targets if isinstance(item, ast.Assign) else ():
                if isinstance(to, ast.Name) and isinstance(item, ast.Assign):
                    self.assigned[to.id] = None if to.id in self.assigned else item.value

    def function(self, name: str) -> tuple[File, ast.FunctionDef] | None:
        """Return the function that a dotted name calls, in this file or in one that is imported from."""
        if name in self.functions:
            return self, self.functions[name]
        first, _, rest = name.partition(".")
        full = self.names.get(first)
        if full is None or full.startswith("triton."):
            return None
        module, _, attribute = f"{full}.{rest}".rstrip(".").rpartition(".")
        other = self._other(module)
        found = other.functions.get(attribute) if other else None
        return (other, found) if other and found else None

    def _other(self, module: str) -> File | None:
        """Return the file of a module that is named as an import does, dots first where it is relative."""
        if module not in self._others and len(self._others) < _MAX_FILES:
            self._others[module] = self._open(module)
        return self._others.get(module)

    def _open(self, module: str) -> File | None:
        level = len(module) - len(module.lstrip("."))
        folder = self.path.split("/")[:-1]
        inner = [part for part in module.split(".") if part]
        if level:
            roots = [folder[: len(folder) - level + 1]] if level <= len(folder) + 1 else []
        else:
            roots = [folder[:depth] for depth in range(len(folder), -1, -1)]
        for root in roots:
            for path in ("/".join([*root, *inner]) + ".py", "/".join([*root, *inner, "__init__.py"])):
                found = self.package.open(path)
                if found is not None:
                    return found
        return None
