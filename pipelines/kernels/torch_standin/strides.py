"""Strides as torch computes them, in elements: which views need no copy, and how a result is laid out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


class Size(tuple[int, ...]):
    """A shape."""

    __slots__ = ()

    def numel(self) -> int:
        """Return how many elements there are."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(super().__add__(tuple(other)))


Size.__module__ = "torch"


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return row-major strides."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Say whether the elements lie row by row; dimensions of one element have any stride."""
    expected = 1
    if 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:
            if stride != expected:
                return False
            expected *= extent
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Say whether the elements fill their range in some order of dimensions, each place once."""
    expected = 1
    for stride, extent in sorted((s, e) for e, s in zip(shape, strides, strict=True) if e != 1):
        if stride != expected:
            return False
        expected *= extent
    return True


def view_strides(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...] | None:
    """Return the strides of a view with another shape, None where only a copy can have it.

    Source: ``computeStride_impl`` in torch's ``ATen/TensorUtils.cpp``.
    """
    if math.prod(shape) == 0:
        return tuple(strides) if tuple(shape) == tuple(wanted) else contiguous_strides(wanted)
    if not shape:
        return (1,) * len(wanted)
    made = [0] * len(wanted)
    at = len(wanted) - 1
    base, elements, viewed = strides[-1], 1, 1
    for dimension in range(len(shape) - 1, -1, -1):
        elements *= shape[dimension]
        ends = dimension == 0 or (shape[dimension - 1] != 1 and strides[dimension - 1] != elements * base)
        if not ends:
            continue
        while at >= 0 and (viewed < elements or wanted[at] == 1):
            made[at] = viewed * base
            viewed *= wanted[at]
            at -= 1
        if viewed != elements:
            return None
        if dimension > 0:
            base, elements, viewed = strides[dimension - 1], 1, 1
    return tuple(made) if at == -1 else None


def result_strides(shape: Sequence[int], operands: Sequence[tuple[Sequence[int], Sequence[int], int]]) -> Any:
    """Return the strides of an elementwise result, which keeps the order of its operands' dimensions.

    Each operand is its shape, its strides and its element's bytes. Source: ``reorder_dimensions`` and
    ``compute_fast_setup_type`` in torch's ``ATen/TensorIterator.cpp``.
    """
    full = [(o, s, size) for o, s, size in operands if tuple(o) == tuple(shape)]
    if len(full) == len(operands):
        if all(is_contiguous(o, s) for o, s, _ in full):
            return contiguous_strides(shape)
        if all(_is_channels_last(o, s) for o, s, _ in full):
            return _channels_last(shape)
        first = tuple(full[0][1]) if full else ()
        if full and all(is_dense(o, s) and tuple(s) == first for o, s, _ in full):
            return first
    rank = len(shape)
    spread = [_spread(shape, o, s, size) for o, s, size in operands]
    order = list(range(rank - 1, -1, -1))  # the fastest first
    for i in range(1, rank):
        one = i
        for zero in range(i - 1, -1, -1):
            compared = _compare(shape, spread, order[zero], order[one])
            if compared > 0:
                order[zero], order[one] = order[one], order[zero]
                one = zero
            elif compared < 0:
                break
    made, step = [0] * rank, 1
    for dimension in order:
        made[dimension] = step
        step *= max(shape[dimension], 1)
    return tuple(made)


def _channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of images whose channels lie beside each other."""
    _, channels, height, width = shape
    return height * width * channels, 1, width * channels, channels


def _is_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    wanted = _channels_last(shape) if len(shape) == 4 else ()
    return bool(wanted) and all(e == 1 or s == w for e, s, w in zip(shape, strides, wanted, strict=True))


def _spread(shape: Sequence[int], own: Sequence[int], strides: Sequence[int], size: int) -> list[int]:
    """Return an operand's strides in bytes, 0 where it is broadcast."""
    pad = len(shape) - len(own)
    return [0] * pad + [0 if extent == 1 and shape[pad + i] != 1 else strides[i] * size for i, extent in enumerate(own)]


def _compare(shape: Sequence[int], spread: Sequence[Sequence[int]], a: int, b: int) -> int:
    """Say whether dimension ``a`` is faster (-1) or slower (1) than ``b``, 0 where no operand tells."""
    for strides in spread:
        first, second = strides[a], strides[b]
        if first == 0 or second == 0:
            continue
        if first != second:
            return -1 if first < second else 1
        if shape[a] > shape[b]:
            return 1
    return 0


def broadcast_shape(*shapes: Sequence[int]) -> Size:
    """Return the shape that all fit.

    Raises:
        RuntimeError: they do not fit.
    """
    rank = max(map(len, shapes), default=0)
    made = [1] * rank
    for shape in shapes:
        for i, extent in enumerate(shape, rank - len(shape)):
            if extent != 1 and made[i] not in (1, extent):
                raise RuntimeError(
                    f"The size of tensor a ({made[i]}) must match the size of tensor b ({extent}) at non-singleton "
                    f"dimension {i}"
                )
            if extent != 1:
                made[i] = extent
    return Size(made)


def dimension(index: int, rank: int) -> int:
    """Return a dimension counted from the front.

    Raises:
        IndexError: there is none such.
    """
    bound = max(rank, 1)
    if not -bound <= index < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {index})"
        )
    return index % bound
