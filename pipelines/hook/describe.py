"""What is compiled, as the files that a recording is read from: the kernel's arguments, its options, its errors."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

from .json_safe import json_safe
from .values import Values

VALUES = Values()
MAX_CAUSES = 16
MAX_MESSAGE = 20_000


def arguments_of(source: Any) -> list[dict[str, Any]]:
    """Return the arguments of an ``ASTSource`` in the kernel's order: type, divisibility, a constexpr's value."""
    function = getattr(source, "fn", None)
    if function is None:
        return []
    return [_argument(n, source.signature.get(n, "constexpr"), (i,), source) for i, n in enumerate(_names(source))]


def _names(source: Any) -> list[str]:
    return list(source.fn.arg_names)


def _argument(name: str, kind: Any, path: tuple[int, ...], source: Any) -> dict[str, Any]:
    if isinstance(kind, tuple):
        fields = getattr(kind, "_fields", range(len(kind)))
        pairs = enumerate(zip(fields, kind))  # noqa: B905 - a tuple has as many fields as members
        members = [_argument(str(field), item, (*path, index), source) for index, (field, item) in pairs]
        return {
            "name": VALUES.short(name),
            "type": written(kind),
            "divisibility": None,
            "value": None,
            "members": members,
        }
    return {
        "name": VALUES.short(name),
        "type": str(kind),
        "divisibility": _attribute(source, path, "tt.divisibility"),
        "value": VALUES.constant(source.constants.get(path)) if kind == "constexpr" else None,
        "pointer_range": _attribute(source, path, "tt.pointer_range"),
    }


def _attribute(source: Any, path: tuple[int, ...], name: str) -> int | None:
    return next((item[1] for item in source.attrs.get(path) or () if item[0] == name), None)


def written(kind: Any) -> str:
    """Write a tuple's type as Python would, without quotes: ``(*fp32, i32)``."""
    if not isinstance(kind, tuple):
        return str(kind)
    inner = ", ".join(written(item) for item in kind)
    return f"({inner},)" if len(kind) == 1 else f"({inner})"


def options_of(options: Any) -> dict[str, Any]:
    """Return a backend's options as JSON."""
    return {name: json_safe(value) for name, value in plain(options).items()}


def plain(options: Any) -> dict[str, Any]:
    """Return options as a dictionary."""
    return dict(options if isinstance(options, dict) else options.__dict__)


def config_label(configs: Iterable[Any], source: Any, options: Any) -> str | None:
    """Name the autotune config whose values a compilation has, by those values; None where none has them."""
    names, chosen = _names(source), plain(options)
    constants = source.constants
    for config in configs:
        values = config.all_kwargs()
        parts = []
        for name, value in values.items():
            used = constants.get((names.index(name),)) if name in names else chosen.get(name)
            if used != value:
                break
            parts.append(f"{name}: {VALUES.constant(value)}")
        else:
            return ", ".join(parts)
    return None


def launch_of(source: Any, grid: Any, values: Iterable[Any]) -> dict[str, Any]:
    """Return the grid and the arguments of a launch; ``values`` are in the kernel's order."""
    names = _names(source) if hasattr(source, "fn") else []
    passed = zip(names, values)  # noqa: B905 - a launch by hand may pass fewer
    return {
        "grid": [int(size) for size in (*grid, 1, 1)[:3]],
        "arguments": [VALUES.passed(name, value) for name, value in passed],
    }


def error_of(error: BaseException, stage: str | None) -> dict[str, Any]:
    """Return an error with every place in Python that led to it, from the kernel to the innermost call.

    Lines count from 1 and columns from 0.
    """
    places: list[dict[str, Any]] = []
    root: Any = error
    for _ in range(MAX_CAUSES):
        if not _is_compilation_error(root):
            break
        place = _place(root)
        places += [place] if place else []
        if root.__cause__ is None:
            break
        root = root.__cause__
    return {
        "type": VALUES.short(type(root).__name__),
        "message": words(root),
        "places": places,
        "stage": stage,
        "user": False,
    }


def words(error: Any) -> str:
    """Return an exception's message, its type's name where it has none."""
    try:
        if _is_compilation_error(error):
            unplaced = None if hasattr(error.node, "lineno") else error.src
            message = str(error.error_message or unplaced or "the kernel cannot be compiled")
        else:
            message = str(error) or type(error).__name__
    except Exception:  # an exception of the program's own
        message = type(error).__name__
    return message.encode("utf-8", errors="backslashreplace").decode()[:MAX_MESSAGE]


def _is_compilation_error(error: Any) -> bool:
    from triton.compiler.errors import CompilationError

    return isinstance(error, CompilationError)


def _place(error: Any) -> dict[str, Any] | None:
    """Return where a function's text, which begins at its ``def`` and is dedented, is in its file."""
    line, column = getattr(error.node, "lineno", None), getattr(error.node, "col_offset", None)
    function = _function_of(error.src) if line is not None else None
    if function is None or line is None:
        return None
    code = function.fn.__code__
    first = getattr(function, "def_file_line_number", None) or getattr(function, "starting_line_number", 1)
    indent = getattr(function, "def_file_col_number", 1) - 1
    place = {"file": code.co_filename, "line": line + first - 1, "message": str(error.error_message or "")}
    return {**place, "column": column + indent if column is not None else None}


def _function_of(text: Any) -> Any:
    """Return the function whose text this is; only an error asks, so looking at every object is bearable."""
    from triton.runtime.jit import JITFunction

    for item in gc.get_objects():
        if issubclass(type(item), JITFunction) and getattr(item, "src", None) == text:
            return item
    return None
