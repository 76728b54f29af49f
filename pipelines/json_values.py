"""Values that a manifest holds as JSON: options, constexprs, what the lowering found out."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, JsonValue

from pipelines.hook.json_safe import MAX_DEPTH, json_safe

__all__ = ["MAX_DEPTH", "JsonData", "json_safe", "plain"]


def plain(value: JsonValue) -> JsonValue:
    """Return the value; raise ValueError for what a reader of the manifest would refuse.

    That is NaN and infinity (parsers let NaN and ``1e999`` through), half a surrogate pair, and deep nesting.
    """
    waiting: list[tuple[JsonValue, int]] = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"a value is nested deeper than {MAX_DEPTH} levels")
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f"{item} is not a JSON number")
        if isinstance(item, str):
            _encodable(item)
        elif isinstance(item, list):
            waiting += [(inner, depth + 1) for inner in item]
        elif isinstance(item, dict):
            for key, inner in item.items():
                _encodable(key)
                waiting.append((inner, depth + 1))
    return value


JsonData = Annotated[JsonValue, AfterValidator(plain)]


def _encodable(text: str) -> None:
    if not text.isascii():
        text.encode()
