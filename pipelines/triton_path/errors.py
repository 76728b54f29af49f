"""Errors in a user's kernel, told with the user's own line. Runs inside the confined child."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITCallable, _triton_jit_function_registry

from pipelines.triton_path.instrument import TRITON_ROOT

MAX_MESSAGE = 20_000
MAX_CAUSES = 16


class UserError(Exception):
    """Something the user has to change; the message says what."""


def describe(error: BaseException, file: str) -> dict[str, Any]:
    """Return the error as JSON: its type, its message, and every place in Python that led to it.

    ``places`` run from the kernel to the innermost call, each with file, line (from 1), column (from 0) and message.
    """
    places: list[dict[str, Any]] = []
    root = error
    for _ in range(MAX_CAUSES):
        if not isinstance(root, CompilationError):
            break
        places.append(_place(root))
        if root.__cause__ is None:
            break
        root = root.__cause__
    if not isinstance(root, CompilationError):
        places += _frames(root, file)
    if isinstance(root, SyntaxError) and root.filename == file:
        places.append({"file": file, "line": root.lineno, "column": (root.offset or 1) - 1, "message": root.msg})
    return {"type": type(root).__name__, "message": clean(_message(root)), "places": places}


def _message(error: BaseException) -> str:
    if isinstance(error, CompilationError):
        return error.error_message or "the kernel cannot be compiled"
    if isinstance(error, SyntaxError):
        return error.msg
    return str(error) or type(error).__name__


def _place(error: Any) -> dict[str, Any]:
    line = getattr(error.node, "lineno", None)
    function = _function_of(error.src)
    if function is not None and line is not None:
        line += function.def_file_line_number - 1
    return {
        "file": function.file_name if function is not None else None,
        "line": line,
        "column": getattr(error.node, "col_offset", None),
        "message": clean(error.error_message or ""),
    }


def _function_of(source: str | None) -> JITCallable | None:
    return next((f for f in _triton_jit_function_registry.values() if f.src == source), None)


def _frames(error: BaseException, file: str) -> list[dict[str, Any]]:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == file]
    return [{"file": file, "line": frame.lineno, "column": frame.colno, "message": ""} for frame in frames[-8:]]


def clean(text: str) -> str:
    """Take the server's paths out of a message and bound its length."""
    text = text.replace(TRITON_ROOT, "<triton>").replace(str(Path.cwd()) + "/", "")
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " ..."
