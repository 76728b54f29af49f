"""Arguments, constexprs and what launch code passed, as JSON and back; the same in every process."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

import triton.language as tl
from pydantic import JsonValue
from triton.runtime.jit import JITCallable

from pipelines.json_values import json_safe
from pipelines.triton_path.errors import UserError
from pipelines.triton_path.virtual import clean, short

FUNCTION = "function"
_MAX_DIMENSIONS = 64
_MAX_DEPTH = 8

_DTYPES = {kind: name for name, kind in vars(tl).items() if type(kind) is tl.dtype}


def constant(value: Any, namespace: Mapping[str, Any]) -> JsonValue:
    """Return a constexpr's value: dtypes as ``tl.float16``, functions as ``{"function": name}``, tuples as lists."""
    value = value.value if isinstance(value, tl.constexpr) else value
    if isinstance(value, list | tuple):
        return [constant(item, namespace) for item in value[:1000]]
    if isinstance(value, tl.dtype):
        return f"tl.{_DTYPES.get(value, value)}"
    if isinstance(value, JITCallable) or (callable(value) and hasattr(value, "__qualname__")):
        return {FUNCTION: _function_name(value, namespace)}
    safe = json_safe(value)
    return clean(safe) if isinstance(safe, str) and not isinstance(value, str) else safe


def _function_name(function: Any, namespace: Mapping[str, Any]) -> str:
    """Return the name by which the source knows the function, else where it is defined."""
    own = getattr(function, "__name__", "")
    if namespace.get(own) is function:
        return short(own)
    name = next((name for name, value in list(namespace.items()) if value is function), None)
    return short(name or f"{function.__module__}.{function.__qualname__}")


def parse_constant(name: str, value: JsonValue, namespace: Mapping[str, Any]) -> Any:
    """Return the value that ``constant`` made JSON of.

    Raises:
        UserError: a function that is not there.
    """
    if isinstance(value, list):
        return tuple(parse_constant(name, item, namespace) for item in value)
    if isinstance(value, dict) and set(value) == {FUNCTION}:
        return _find_function(name, str(value[FUNCTION]), namespace)
    named = re.fullmatch(r"tl\.(\w+)", value) if isinstance(value, str) else None
    kind = getattr(tl, named[1], None) if named else None
    return kind if isinstance(kind, tl.dtype) else value


def _find_function(name: str, wanted: str, namespace: Mapping[str, Any]) -> Any:
    found = namespace.get(wanted)
    if found is None and wanted.startswith("triton."):
        module, _, attribute = wanted.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), attribute, None)
        except ImportError:
            found = None
    if not callable(found):
        raise UserError(f"{name}: the source has no function {wanted!r} to pass")
    return found


def passed(name: str, value: Any, namespace: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Say what launch code passed: a tensor-like's dtype, shape and strides in elements, or a plain value."""
    return {"name": short(name), **_described(value, namespace)}


def _described(value: Any, namespace: Mapping[str, Any], depth: int = 0) -> dict[str, JsonValue]:
    if isinstance(value, tuple | list) and depth < _MAX_DEPTH:
        members = [_described(item, namespace, depth + 1) for item in value[:1000]]
        return {"dtype": type(value).__name__, "value": [_member(item) for item in members]}
    if hasattr(value, "block_shape") and hasattr(value, "base"):
        return _descriptor(value)
    if hasattr(value, "data_ptr"):
        return {
            "dtype": short(getattr(value, "dtype", "")),
            "shape": _integers(getattr(value, "shape", None)),
            "strides": _integers(_strides(value)),
        }
    return {"dtype": short(type(value).__name__), "value": constant(value, namespace)}


def _member(described: dict[str, JsonValue]) -> JsonValue:
    """Return a plain value as itself, a tensor or a descriptor with what is known of it."""
    return described if "shape" in described else described["value"]


def _descriptor(value: Any) -> dict[str, JsonValue]:
    block: dict[str, JsonValue] = {
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
