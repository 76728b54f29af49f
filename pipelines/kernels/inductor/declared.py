"""Stands for ``torch._inductor.runtime.triton_heuristics``: decorators that keep what Inductor wrote in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Declared:
    """A kernel with its decorator's name and arguments."""

    kind: str
    arguments: dict[str, Any]
    function: Any

    @property
    def meta(self) -> dict[str, Any]:
        """``triton_meta``: signature, constants, attributes."""
        meta = self.arguments.get("triton_meta")
        return meta if isinstance(meta, dict) else {}


def _decorator(kind: str, names: tuple[str, ...]) -> Callable[..., Callable[[Any], Declared]]:
    """Return a decorator that takes what Inductor gives it, by position as ``names`` or by name."""

    def declare(*args: Any, **kwargs: Any) -> Callable[[Any], Declared]:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        return lambda function: Declared(kind, given, function)

    return declare


pointwise = _decorator("pointwise", ("size_hints", "triton_meta"))
reduction = _decorator("reduction", ("size_hints", "reduction_hint", "triton_meta"))
cooperative_reduction = _decorator("cooperative_reduction", ("size_hints", "reduction_hint", "triton_meta"))
persistent_reduction = _decorator("persistent_reduction", ("size_hints", "reduction_hint", "triton_meta"))
split_scan = _decorator("split_scan", ("size_hints", "reduction_hint", "triton_meta"))
template = _decorator("template", ("num_stages", "num_warps", "triton_meta"))
foreach = _decorator("foreach", ("triton_meta", "num_warps"))
user_autotune = _decorator("user_autotune", ("configs", "triton_meta"))
fixed_config = _decorator("fixed_config", ("config", "filename", "triton_meta"))


def _name(value: object) -> str:
    """Return the name of an enumeration's member."""
    return str(getattr(value, "name", value) or "DEFAULT").rpartition(".")[2].upper()


def hint(declared: Declared) -> str:
    """Return the reduction hint's name, ``DEFAULT`` where there is none."""
    return _name(declared.arguments.get("reduction_hint"))
