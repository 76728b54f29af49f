"""A kernel's signature as a user writes it: ``x_ptr=*fp16:16``, ``n=i32``, ``bias=None``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SCALARS = "i1|i8|i16|i32|i64|u1|u8|u16|u32|u64|fp8e4nv|fp8e4b8|fp8e4b15|fp8e5|fp8e5b16|fp16|bf16|fp32|fp64"
_TYPE = re.compile(
    rf"\*?k?\*?(?:{_SCALARS})"
    rf"|tensordesc<(?:{_SCALARS})\[\d+(?:, ?\d+)*\](?:,[^>]{{0,200}})?>"
    r"|nvTmaDesc"
)


class SignatureError(ValueError):
    """An argument that cannot be read; the message says which and what would be right."""


@dataclass(frozen=True)
class ArgumentType:
    """A type with the power of two that divides the value, where one is promised; ``type`` None means ``None``."""

    type: str | None
    divisibility: int | None = None


def parse_argument(name: str, text: str) -> ArgumentType:
    """Read ``*fp16:16``, ``i32``, ``fp32`` or ``None``.

    Raises:
        SignatureError: no such type, or a divisibility that is not a power of two.
    """
    kind, _, divisibility = text.strip().partition(":")
    kind = kind.strip()
    if kind in ("None", "none"):
        return ArgumentType(None)
    if not _TYPE.fullmatch(kind):
        raise SignatureError(
            f"argument {name}: {text!r} is not a type; write a pointer such as *fp16:16, "
            "a scalar such as i32 or fp32, or None"
        )
    if not divisibility:
        return ArgumentType(kind)
    if not divisibility.strip().isdigit() or not _power_of_two(int(divisibility)):
        raise SignatureError(f"argument {name}: divisibility {divisibility!r} is not a power of two, such as 16")
    return ArgumentType(kind, int(divisibility))


def _power_of_two(value: int) -> bool:
    return 0 < value <= 1 << 20 and value & (value - 1) == 0
