"""A kernel's signature as a user writes it: ``x_ptr=*fp16:16``, ``n=i32``, ``bias=None``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

MAX_BLOCK = 1 << 20  # elements, as Triton has it
POINTER_RANGE = "32"
MAX_DIVISIBILITY = 1 << 20
MAX_MEMBERS = 256
MAX_DEPTH = 8

_FLOATS = "fp8e4nv|fp8e4b8|fp8e4b15|fp8e5|fp8e5b16|fp16|bf16|fp32|fp64"
_INTEGERS = "i8|i16|i32|i64|u8|u16|u32|u64"
_PLAIN = re.compile(rf"(?:\*k?)?(?:i1|u1|{_INTEGERS}|{_FLOATS})")
_DESCRIPTOR = re.compile(
    rf"tensordesc<(?:{_INTEGERS}|{_FLOATS})\[(?P<shape>[0-9]{{1,7}}(?:, ?[0-9]{{1,7}}){{0,4}})\]"
    r"(?:,(?:NVMMA|Padded|Swizzled)SharedLayout\([\w\s=,\[\]()-]{0,400}\))?>"
)
_VALUE = re.compile(r"[+-]?\.?[0-9][\w.+-]*|True|False|tl\.\w+|['\"].*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,18}|[0-9]{1,18}\.[0-9]{0,18}(?:e[+-]?[0-9]{1,2})?)")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_CONSTANT_POINTER = re.compile(r"\*?k\*(?P<element>\w+)")


class SignatureError(ValueError):
    """An argument that cannot be read; the message says which and what would be right."""


@dataclass(frozen=True)
class ArgumentType:
    """A type with the power of two that divides the value, where one is promised; ``type`` None means ``None``.

    A tuple has its elements as ``members``. One of them may be a value: its type is ``constexpr``. ``pointer_range`` is
    how many bits hold any offset from a pointer.
    """

    type: str | None
    divisibility: int | None = None
    members: tuple[ArgumentType, ...] = ()
    value: int | float | bool | None = None
    pointer_range: int | None = None


def parse_argument(name: str, text: str) -> ArgumentType:
    """Read ``*fp16:16``, ``i32``, ``fp32``, ``None`` or a tuple such as ``(*fp16:16, (i32, 7))``.

    ``*fp16:16:32`` promises besides that 32 bits hold any offset from the pointer, as AMD's back end is told.

    Raises:
        SignatureError: no such type, or a divisibility that is not a power of two.
    """
    if text.strip().startswith("("):
        return _parse_tuple(name, text.strip())
    kind, colon, divisibility = (part.strip() for part in text.strip().partition(":"))
    if kind in ("None", "none") and not colon:
        return ArgumentType(None)
    _check_type(name, kind, text.strip()[:80])
    if not colon:
        return ArgumentType(kind)
    divisibility, ranged, bits = (part.strip() for part in divisibility.partition(":"))
    if ranged and (bits != POINTER_RANGE or not kind.startswith("*")):
        raise SignatureError(f"argument {name}: a pointer may promise {POINTER_RANGE}-bit offsets, as in *fp16:16:32")
    if not re.fullmatch(r"[0-9]{1,9}", divisibility) or not _power_of_two(int(divisibility), MAX_DIVISIBILITY):
        raise SignatureError(f"argument {name}: divisibility {divisibility[:80]!r} is not a power of two, such as 16")
    return ArgumentType(kind, int(divisibility), pointer_range=int(POINTER_RANGE) if ranged else None)


def _parse_tuple(name: str, text: str, depth: int = 0) -> ArgumentType:
    items = _items(name, text)
    if depth == MAX_DEPTH or len(items) > MAX_MEMBERS:
        raise SignatureError(f"argument {name}: a tuple has at most {MAX_MEMBERS} elements, {MAX_DEPTH} deep")
    members = tuple(
        _parse_tuple(name, item, depth + 1) if item.startswith("(") else _parse_member(name, item) for item in items
    )
    return ArgumentType("tuple", members=members)


def _parse_member(name: str, text: str) -> ArgumentType:
    if text in ("True", "False"):
        return ArgumentType("constexpr", value=text == "True")
    if _NUMBER.fullmatch(text):
        return ArgumentType("constexpr", value=int(text) if _WHOLE.fullmatch(text) else float(text))
    return parse_argument(name, text)


def _items(name: str, text: str) -> list[str]:
    """Split what stands between a tuple's parentheses at its commas; those of inner brackets do not count."""
    items, depth, begin = [], 0, 1
    for at, character in enumerate(text):
        depth += (character in "([<") - (character in ")]>")
        if depth == 0 and at < len(text) - 1:
            raise SignatureError(f"argument {name}: {text[:80]!r} goes on after its tuple")
        if depth == 1 and character == ",":
            items.append(text[begin:at].strip())
            begin = at + 1
    if depth:
        raise SignatureError(f"argument {name}: a bracket of {text[:80]!r} is not closed")
    last = text[begin:-1].strip()
    if last or not items:
        items.append(last)
    if not all(items):
        raise SignatureError(f"argument {name}: the tuple {text[:80]!r} lacks an element; write (*fp16:16, i32)")
    return items


def _check_type(name: str, kind: str, text: str) -> None:
    """Raise SignatureError unless Triton compiles the type: what it does not know makes it fail in words of its own."""
    descriptor = _DESCRIPTOR.fullmatch(kind)
    if descriptor:
        shape = [int(size) for size in descriptor["shape"].split(",")]
        if not all(_power_of_two(size, MAX_BLOCK) for size in shape) or math.prod(shape) > MAX_BLOCK:
            raise SignatureError(
                f"argument {name}: the block of {text!r} must have powers of two as sides, "
                f"and {MAX_BLOCK} elements at most"
            )
        return
    if _PLAIN.fullmatch(kind):
        return
    if _VALUE.fullmatch(kind):
        raise SignatureError(
            f"argument {name}: {text!r} is a value, not a type; give a constexpr its value apart: "
            f"--const {name}={text}, or constexprs in JSON"
        )
    if kind.startswith("**"):
        raise SignatureError(f"argument {name}: Triton has no pointers to pointers; pass *i64 and cast what it holds")
    constant = _CONSTANT_POINTER.fullmatch(kind)
    if constant:
        raise SignatureError(f"argument {name}: a pointer to constants is written *k{constant['element']}")
    raise SignatureError(
        f"argument {name}: {text!r} is not a type; write a pointer such as *fp16:16, "
        "a scalar such as i32 or fp32, tensordesc<fp16[64, 64]>, a tuple such as (*fp16:16, i32), or None"
    )


def _power_of_two(value: int, most: int) -> bool:
    return 0 < value <= most and value & (value - 1) == 0
