"""Values as JSON, the same in every process."""

from __future__ import annotations

import math
import re
from typing import Any

MAX_DEPTH = 32
MAX_REPR = 4_000
MAX_INTEGER_BITS = 1_024

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def json_safe(value: Any, depth: int = 0) -> Any:
    """Turn an option's or constexpr's value into JSON: tuples become lists, what JSON lacks becomes its repr.

    The result is what a manifest's reader accepts, and the same in every process: a repr's address is left out.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() <= MAX_INTEGER_BITS else hex(value)[:MAX_REPR]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if depth < MAX_DEPTH and isinstance(value, (list, tuple)):
        return [json_safe(item, depth + 1) for item in value]
    if depth < MAX_DEPTH and isinstance(value, dict):
        return {_text(str(key)): json_safe(item, depth + 1) for key, item in value.items()}
    return _repr(value)


def _repr(value: Any) -> str:
    try:
        shown = repr(value)
    except Exception:  # the value is the user's own, and so is its __repr__
        shown = f"<{type(value).__name__}>"
    return _text(_ADDRESS.sub("", shown[:MAX_REPR]))


def _text(value: str) -> str:
    return value.encode("utf-8", errors="backslashreplace").decode()
