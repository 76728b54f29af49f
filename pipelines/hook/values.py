"""Arguments, constexprs and what launch code passed, as JSON."""

from __future__ import annotations

import functools
from typing import Any

from .json_safe import json_safe

FUNCTION = "function"

_MAX_DIMENSIONS = 64
_MAX_DEPTH = 8
_MAX_MEMBERS = 1_000
_MAX_NAME = 500


class Values:
    """Describes values; a subclass may name functions in another way and clean what is not the user's own text."""

    def name(self, function: Any) -> str:
        """Return where a function is defined."""
        return f"{function.__module__}.{getattr(function, '__qualname__', function.__name__)}"

    def clean(self, text: str) -> str:
        """Return a text as it is written."""
        return text.encode("utf-8", errors="backslashreplace").decode()

    def short(self, text: object) -> str:
        """Return a text that fits a record's name."""
        return self.clean(str(text))[:_MAX_NAME]

    def constant(self, value: Any) -> Any:
        """Return a constexpr: dtypes as ``tl.float16``, functions as ``{"function": name}``, tuples as lists."""
        import triton.language as tl
        from triton.runtime import jit

        value = value.value if isinstance(value, tl.constexpr) else value
        if isinstance(value, (list, tuple)):
            return [self.constant(item) for item in value[:_MAX_MEMBERS]]
        if isinstance(value, tl.dtype):
            return f"tl.{_dtypes().get(value, value)}"
        kernels = getattr(jit, "JITCallable", jit.JITFunction)  # older versions have only the latter
        if isinstance(value, kernels) or (callable(value) and hasattr(value, "__qualname__")):
            return {FUNCTION: self.short(self.name(value))}
        safe = json_safe(value)
        return self.clean(safe) if isinstance(safe, str) and not isinstance(value, str) else safe

    def passed(self, name: str, value: Any) -> dict[str, Any]:
        """Say what was passed: a tensor-like's dtype, shape and strides in elements, or a plain value."""
        return {"name": self.short(name), **self._described(value)}

    def _described(self, value: Any, depth: int = 0) -> dict[str, Any]:
        if isinstance(value, (tuple, list)) and depth < _MAX_DEPTH:
            members = [self._described(item, depth + 1) for item in value[:_MAX_MEMBERS]]
            return {"dtype": type(value).__name__, "value": [_member(item) for item in members]}
        if hasattr(value, "block_shape") and hasattr(value, "base"):
            return self._descriptor(value)
        if hasattr(value, "data_ptr"):
            return {
                "dtype": self.short(getattr(value, "dtype", "")),
                "shape": _integers(getattr(value, "shape", None)),
                "strides": _integers(_strides(value)),
            }
        return {"dtype": self.short(type(value).__name__), "value": self.constant(value)}

    def _descriptor(self, value: Any) -> dict[str, Any]:
        block: dict[str, Any] = {
            "block_shape": _integers(value.block_shape),
            "base_strides": _integers(_strides(value.base)),
            "padding": self.short(getattr(value, "padding", "zero")),
        }
        if hasattr(value, "layout"):
            block["layout"] = self.short(value.layout)
        return {
            "dtype": self.short(getattr(value.base, "dtype", "")),
            "shape": _integers(getattr(value, "shape", None)),
            "strides": _integers(getattr(value, "strides", None)),
            "value": block,
        }


@functools.cache
def _dtypes() -> dict[Any, str]:
    import triton.language as tl

    return {kind: name for name, kind in vars(tl).items() if type(kind) is tl.dtype}


def _member(item: dict[str, Any]) -> Any:
    """Return a plain value as itself, a tensor or a descriptor with what is known of it."""
    return item if "shape" in item else item["value"]


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
