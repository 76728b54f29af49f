"""Arguments, constexprs and what launch code passed, as JSON."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .json_safe import json_safe

FUNCTION = "function"

_MAX_DIMENSIONS = 64
_MAX_DEPTH = 8
_MAX_MEMBERS = 1_000
_MAX_NAME = 500


def qualified_name(function: Any) -> str:
    """Return where a function is defined."""
    return f"{function.__module__}.{getattr(function, '__qualname__', function.__name__)}"


def constant(value: Any, name: Callable[[Any], str] = qualified_name, clean: Callable[[str], str] = str) -> Any:
    """Return a constexpr's value: dtypes as ``tl.float16``, functions as ``{"function": name}``, tuples as lists.

    ``name`` names functions; ``clean`` goes over the repr of what JSON lacks.
    """
    import triton.language as tl
    from triton.runtime.jit import JITFunction

    value = value.value if isinstance(value, tl.constexpr) else value
    if isinstance(value, (list, tuple)):
        return [constant(item, name, clean) for item in value[:_MAX_MEMBERS]]
    if isinstance(value, tl.dtype):
        return f"tl.{_dtypes().get(value, value)}"
    if isinstance(value, JITFunction) or (callable(value) and hasattr(value, "__qualname__")):
        return {FUNCTION: name(value)}
    safe = json_safe(value)
    return clean(safe) if isinstance(safe, str) and not isinstance(value, str) else safe


@functools.cache
def _dtypes() -> dict[Any, str]:
    import triton.language as tl

    return {kind: name for name, kind in vars(tl).items() if type(kind) is tl.dtype}


def described(value: Any, constant: Callable[[Any], Any] = constant, depth: int = 0) -> dict[str, Any]:
    """Say what launch code passed: a tensor-like's dtype, shape and strides in elements, or a plain value."""
    if isinstance(value, (tuple, list)) and depth < _MAX_DEPTH:
        members = [described(item, constant, depth + 1) for item in value[:_MAX_MEMBERS]]
        return {"dtype": type(value).__name__, "value": [_member(item) for item in members]}
    if hasattr(value, "block_shape") and hasattr(value, "base"):
        return _descriptor(value)
    if hasattr(value, "data_ptr"):
        return {
            "dtype": short(getattr(value, "dtype", "")),
            "shape": _integers(getattr(value, "shape", None)),
            "strides": _integers(_strides(value)),
        }
    return {"dtype": short(type(value).__name__), "value": constant(value)}


def short(value: object) -> str:
    """Return a text that fits a record's name."""
    return str(value).encode("utf-8", errors="backslashreplace").decode()[:_MAX_NAME]


def _member(item: dict[str, Any]) -> Any:
    """Return a plain value as itself, a tensor or a descriptor with what is known of it."""
    return item if "shape" in item else item["value"]


def _descriptor(value: Any) -> dict[str, Any]:
    block: dict[str, Any] = {
        "block_shape": _integers(value.block_shape),
        "base_strides": _integers(_strides(value.base)),
        "padding": short(getattr(value, "padding", "zero")),
    }
    if hasattr(value, "layout"):
        block["layout"] = short(value.layout)
    return {
        "dtype": short(getattr(value.base, "dtype", "")),
        "shape": _integers(getattr(value, "shape", None)),
        "strides": _integers(getattr(value, "strides", None)),
        "value": block,
    }


def _strides(value: Any) -> Any:
    strides = getattr(value, "stride", None) or getattr(value, "strides", None)
    try:
        return strides() if callable(strides) else strides
    except Exception:  # the object is the user's own, and so is its method
        return None


def _integers(values: Any) -> Any:
    """Return whole numbers as a list, None for what is no list of them."""
    try:
        return [int(value) for value in values][:_MAX_DIMENSIONS]
    except (TypeError, ValueError, OverflowError):
        return None
