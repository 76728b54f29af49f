"""Arguments, constexprs and what launch code passed, as JSON and back; the same in every process."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

import triton.language as tl
from pydantic import JsonValue

from pipelines.hook.values import FUNCTION, Values
from pipelines.triton_path.errors import UserError
from pipelines.triton_path.virtual import clean

__all__ = ["FUNCTION", "constant", "parse_constant", "passed"]


class _Named(Values):
    """Names functions as the source knows them, and keeps the server's paths out."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace

    def name(self, function: Any) -> str:
        own: str = getattr(function, "__name__", "")
        if self._namespace.get(own) is function:
            return own
        held = next((name for name, value in list(self._namespace.items()) if value is function), None)
        return held or super().name(function)

    def clean(self, text: str) -> str:
        return clean(text)


def constant(value: Any, namespace: Mapping[str, Any]) -> JsonValue:
    """Return a constexpr's value: dtypes as ``tl.float16``, functions as ``{"function": name}``, tuples as lists."""
    found: JsonValue = _Named(namespace).constant(value)
    return found


def passed(name: str, value: Any, namespace: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Say what launch code passed: a tensor-like's dtype, shape and strides in elements, or a plain value."""
    return _Named(namespace).passed(name, value)


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
