"""Errors in a user's kernel, told with the user's own line. Runs inside the confined child."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Collection, Iterator
from types import FrameType
from typing import Any

from triton.compiler.errors import CompilationError
from triton.runtime.jit import DependenciesFinder, JITCallable

from pipelines.triton_path.virtual import KernelText, clean, short

MAX_CAUSES = 16
MAX_FRAMES = 8


class UserError(Exception):
    """Something the user has to change; the message says what."""


def describe(error: BaseException, own: Collection[str], kernel: JITCallable | None = None) -> dict[str, Any]:
    """Return the error as JSON: its type, its message, and every place in Python that led to it.

    ``places`` run from the kernel to the innermost call, each with file, line (from 1), column (from 0) and message.
    ``own`` are the source's files; an error without a place in one is at ``kernel``, where that is given. Never raises:
    an exception of the source's may be anything.
    """
    try:
        return _describe(error, own, kernel)
    except BaseException:  # a field of the exception's own
        return {"type": short(type(error).__name__), "message": "an error that cannot be told", "places": []}


def _describe(error: BaseException, own: Collection[str], kernel: JITCallable | None) -> dict[str, Any]:
    places: list[dict[str, Any]] = []
    root = error
    for _ in range(MAX_CAUSES):
        if not isinstance(root, CompilationError):
            break
        places += _places(root)
        if root.__cause__ is None:
            break
        root = root.__cause__
    if not isinstance(root, CompilationError):
        places += frames(root, own)
    if isinstance(root, SyntaxError) and root.filename in own:
        at = {"file": root.filename, "line": root.lineno, "column": (root.offset or 1) - 1}
        places.append({**at, "message": words(root)})
    if not places and kernel is not None:
        places.append(_reference(root) or _at(kernel, 1, 0))
    return {"type": short(type(root).__name__), "message": words(root), "places": places}


def words(error: BaseException) -> str:
    """Return an exception's message, its type's name where it has none."""
    name = type(error).__name__
    try:
        if isinstance(error, CompilationError):
            # Without a node, Triton gives the message in the place of the source.
            unplaced = None if hasattr(error.node, "lineno") else error.src
            return clean(str(error.error_message or unplaced or "the kernel cannot be compiled"))
        if isinstance(error, SyntaxError):
            return clean(str(error.msg or name))
        if isinstance(error, ImportError) and "no known parent package" in str(error):
            return clean(f"{error}: add the other files of its package, and relative imports work")
        return clean(str(error) or name)
    except BaseException:  # the source's own __str__
        return clean(name)


def out_of_memory(error: BaseException) -> bool:
    """Say whether an exception is a MemoryError or was raised on account of one, as Triton wraps them."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        item = waiting.pop()
        if item is None or id(item) in seen:
            continue
        if isinstance(item, MemoryError):
            return True
        seen.add(id(item))
        waiting += [item.__cause__, item.__context__]
    return False


def frames(error: BaseException, own: Collection[str]) -> list[dict[str, Any]]:
    """Return the places of the source that an exception came through, the innermost last; ``own`` are its files."""
    found = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in own]
    return [
        {
            "file": frame.filename,
            "line": frame.lineno,
            "column": _characters(linecache.getline(frame.filename, frame.lineno or 0), frame.colno),
            "message": "",
        }
        for frame in found[-MAX_FRAMES:]
    ]


def _places(error: Any) -> list[dict[str, Any]]:
    line, column = getattr(error.node, "lineno", None), getattr(error.node, "col_offset", None)
    if line is None or not isinstance(error.src, KernelText):
        return []
    return [{**_at(error.src.function, line, column), "message": clean(str(error.error_message or ""))}]


def _at(function: JITCallable, line: int, column: int | None) -> dict[str, Any]:
    """Return a place of a function's text, which begins at its ``def`` and is dedented, as one of its file."""
    lines = function.src.splitlines()
    inside = _characters(lines[line - 1] if line <= len(lines) else "", column)
    return {
        "file": short(function.file_name),
        "line": line + function.def_file_line_number - 1,
        "column": inside + function.def_file_col_number - 1 if inside is not None else None,
        "message": "",
    }


def _characters(line: str, column: int | None) -> int | None:
    """Return a column in characters: Python counts it in bytes of UTF-8."""
    return len(line.encode()[:column].decode(errors="ignore")) if column is not None else None


def _reference(error: BaseException) -> dict[str, Any] | None:
    """Return where a kernel refers to what Triton's finder of dependencies refuses."""
    function: JITCallable | None = None
    node: Any = None
    for frame in _frames_of(error):
        owner = frame.f_locals.get("self")
        if isinstance(owner, JITCallable) and frame.f_code.co_name == "cache_key":
            function = owner
        elif isinstance(owner, DependenciesFinder) and hasattr(frame.f_locals.get("node"), "lineno"):
            node = frame.f_locals["node"]
    return _at(function, node.lineno, node.col_offset) if function is not None and node is not None else None


def _frames_of(error: BaseException) -> Iterator[FrameType]:
    for frame, _ in traceback.walk_tb(error.__traceback__):
        yield frame
