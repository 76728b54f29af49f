"""Block sizes and warps where Inductor's decorator leaves them to its autotuner: one config that it would try first.

After ``torch/_inductor/runtime/triton_heuristics.py`` of PyTorch 2.9, without its autotuning: sizes are powers of two,
start from a tile for the number of dimensions, shrink to the size hints and grow again where there is room.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

MAX_BLOCK = {"XBLOCK": 4096, "YBLOCK": 1024, "ZBLOCK": 1024}
MAX_REDUCTION_BLOCK = 2048
_TILES = {1: (1024,), 2: (32, 32), 3: (16, 16, 16)}
_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Blocks:
    """Values for block arguments by name, and the warps to run them."""

    sizes: dict[str, int]
    num_warps: int


def power_of_two(value: float) -> int:
    """Return the next power of two, 1 for anything below."""
    return 1 << max(0, math.ceil(value) - 1).bit_length() if value > 1 else 1


def pointwise(hints: Mapping[str, int]) -> Blocks:
    """Choose for an elementwise kernel; ``hints`` are elements by axis, ``x`` the fastest."""
    axes = [axis for axis in _AXES if axis in hints]
    limits = {axis: power_of_two(hints[axis]) for axis in axes}
    tile = dict(zip(axes, _TILES[len(axes)], strict=True))
    if len(axes) == 1:
        tile["x"] = max(256, min(limits["x"] // 128, 1024))
    target = math.prod(tile.values())
    tile = {axis: min(size, limits[axis]) for axis, size in tile.items()}
    for axis in axes:
        while tile[axis] < limits[axis] and math.prod(tile.values()) < target:
            tile[axis] *= 2
    elements = math.prod(tile.values())
    warps = min(8, power_of_two(elements / 256))
    return Blocks(_named(tile), max(warps, 4) if elements >= 128 else warps)


def reduction(hints: Mapping[str, int], hint: str) -> Blocks:
    """Choose for a looped reduction; ``hint`` is Inductor's: ``INNER``, ``OUTER``, ``OUTER_TINY`` or ``DEFAULT``."""
    length = _length(hints)
    across = power_of_two(hints.get("x", 1))
    inner = min(length, MAX_REDUCTION_BLOCK)
    x, r = {
        "OUTER": (64, 8),
        "OUTER_TINY": (2 * (256 // length) if length <= 256 else 1, inner),
        "DEFAULT": (32, 128),
    }.get(hint, (1, inner))
    tile = {"x": min(x, across), **_spread(min(r, length), hints)}
    return Blocks(_named(tile), max(2, min(16, power_of_two(math.prod(tile.values()) / 128))))


def persistent(hints: Mapping[str, int], hint: str) -> Blocks:
    """Choose for a reduction that holds its whole row; the kernel itself sets the row's block."""
    length = _length(hints)
    across = power_of_two(hints.get("x", 1))
    wanted = 1 if hint == "INNER" or length > 1024 else max(1, min(32, 1024 // length))
    tile = {"x": min(wanted, across), **_spread(length, hints)}
    return Blocks(_named(tile), max(1, min(8, power_of_two(tile["x"] * length / 256))))


def _length(hints: Mapping[str, int]) -> int:
    """Return the elements that are reduced, a power of two."""
    return math.prod(power_of_two(size) for axis, size in hints.items() if axis.startswith("r"))


def _spread(elements: int, hints: Mapping[str, int]) -> dict[str, int]:
    """Give a reduction's block to its axes, the last first."""
    axes = sorted((axis for axis in hints if axis.startswith("r")), reverse=True)
    sizes: dict[str, int] = {}
    for axis in axes:
        sizes[axis] = min(power_of_two(hints[axis]), max(elements, 1))
        elements //= sizes[axis]
    return sizes


def _named(tile: Mapping[str, int]) -> dict[str, int]:
    named = {f"{axis.upper()}BLOCK": size for axis, size in tile.items()}
    return {name: min(size, MAX_BLOCK.get(name, size)) for name, size in named.items()}
