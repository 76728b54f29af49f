"""Views: the same storage under another shape, and what copies only where no view can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pipelines.kernels.torch_standin import autograd
from pipelines.kernels.torch_standin.core import FUNCTIONS, Tensor, contiguous, new, view
from pipelines.kernels.torch_standin.dtypes import DType
from pipelines.kernels.torch_standin.registry import add_method, operation, sizes
from pipelines.kernels.torch_standin.strides import Size, dimension, is_contiguous, view_strides


def derived(
    base: Tensor,
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int | None = None,
    backward: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Return a view whose gradient is a view of what comes, where ``backward`` makes one."""
    made = view(base, shape, strides, offset)
    return autograd.record(made, [base], (lambda grad: [backward(grad)]) if backward else None)


def _complete(base: Tensor, wanted: list[int]) -> list[int]:
    """Fill in the one extent that is given as -1."""
    if -1 in wanted:
        rest = math.prod(extent for extent in wanted if extent != -1)
        wanted = [base.shape.numel() // max(rest, 1) if extent == -1 else extent for extent in wanted]
    if math.prod(wanted) != base.shape.numel():
        raise RuntimeError(f"shape '{wanted}' is invalid for input of size {base.shape.numel()}")
    return wanted


@operation("view", function=False)
def view_(base: Tensor, *shape: Any, dtype: DType | None = None) -> Tensor:
    """Return a view of another shape, or of another type."""
    kind = dtype or (shape[0] if shape and isinstance(shape[0], DType) else None)
    if kind is not None:
        return _as_type(base, kind)
    wanted = _complete(base, sizes(shape))
    strides = view_strides(base.shape, base.strides, wanted)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return derived(base, wanted, strides, None, lambda grad: reshape(grad, tuple(base.shape)))


def _as_type(base: Tensor, kind: DType) -> Tensor:
    """Return the same bytes as elements of another type; the last dimension grows or shrinks."""
    old, wanted = base.dtype.itemsize, kind.itemsize
    if old == wanted or not base.shape:
        made = view(base, base.shape, base.strides)
    elif base.strides[-1] != 1 or (base.shape[-1] * old) % wanted:
        raise RuntimeError(f"the last dimension cannot be viewed as {kind}")
    else:
        strides = [stride * old // wanted for stride in base.strides[:-1]]
        shape = [*base.shape[:-1], base.shape[-1] * old // wanted]
        made = view(base, shape, [*strides, 1], base.offset * old // wanted)
    made.dtype = kind
    return made


@operation()
def reshape(base: Tensor, *shape: Any) -> Tensor:
    """Return a view of another shape, a copy where there is none."""
    wanted = _complete(base, sizes(shape))
    strides = view_strides(base.shape, base.strides, wanted)
    if strides is None:
        base = contiguous(base)
        return derived(base, wanted, view_strides(base.shape, base.strides, wanted) or ())
    return derived(base, wanted, strides, None, lambda grad: reshape(grad, tuple(base.shape)))


@operation(function=False)
def view_as(base: Tensor, other: Tensor) -> Tensor:
    """Return a view of another's shape."""
    return view_(base, tuple(other.shape))


@operation(function=False)
def reshape_as(base: Tensor, other: Tensor) -> Tensor:
    """Return it in another's shape."""
    return reshape(base, tuple(other.shape))


@operation("permute")
def permute(base: Tensor, *dims: Any) -> Tensor:
    """Return a view with its dimensions in another order."""
    order = [dimension(item, base.ndim) for item in sizes(dims)]
    if sorted(order) != list(range(base.ndim)):
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not match")
    back = [order.index(i) for i in range(base.ndim)]
    shape, strides = [base.shape[i] for i in order], [base.strides[i] for i in order]
    return derived(base, shape, strides, None, lambda grad: permute(grad, back))


@operation("transpose", "swapaxes", "swapdims")
def transpose(base: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with two dimensions exchanged."""
    order = list(range(base.ndim))
    a, b = dimension(dim0, base.ndim), dimension(dim1, base.ndim)
    if order:
        order[a], order[b] = order[b], order[a]
    return permute(base, order)


@operation()
def t(base: Tensor) -> Tensor:
    """Return a matrix transposed."""
    if base.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {base.ndim}D")
    return transpose(base, 0, 1) if base.ndim == 2 else base


@operation("movedim", "moveaxis")
def movedim(base: Tensor, source: Any, destination: Any) -> Tensor:
    """Return a view with some dimensions moved."""
    moved = [dimension(i, base.ndim) for i in sizes((source,))]
    places = [dimension(i, base.ndim) for i in sizes((destination,))]
    rest = [i for i in range(base.ndim) if i not in moved]
    for place, source_dim in sorted(zip(places, moved, strict=True)):
        rest.insert(place, source_dim)
    return permute(base, rest)


@operation()
def unsqueeze(base: Tensor, dim: int) -> Tensor:
    """Return a view with one more dimension."""
    at = dimension(dim, base.ndim + 1)
    stride = base.shape[at] * base.strides[at] if at < base.ndim else 1
    shape, strides = [*base.shape], [*base.strides]
    shape.insert(at, 1)
    strides.insert(at, stride)
    return derived(base, shape, strides, None, lambda grad: squeeze(grad, at))


@operation()
def squeeze(base: Tensor, dim: Any = None) -> Tensor:
    """Return a view without dimensions of one element: all of them, or those named."""
    named = range(base.ndim) if dim is None else [dimension(i, base.ndim) for i in sizes((dim,))]
    gone = {i for i in named if i < base.ndim and base.shape[i] == 1}
    shape = [extent for i, extent in enumerate(base.shape) if i not in gone]
    strides = [stride for i, stride in enumerate(base.strides) if i not in gone]
    return derived(base, shape, strides, None, lambda grad: reshape(grad, tuple(base.shape)))


@operation(function=False)
def expand(base: Tensor, *shape: Any) -> Tensor:
    """Return a view that repeats dimensions of one element without copying."""
    wanted = sizes(shape)
    pad = len(wanted) - base.ndim
    made, strides = [], []
    for i, extent in enumerate(wanted):
        own = base.shape[i - pad] if i >= pad else 1
        keep = extent in (-1, own) and i >= pad
        if not keep and own != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({extent}) must match the existing size ({own}) at non-singleton "
                f"dimension {i}.  Target sizes: {wanted}.  Tensor sizes: {list(base.shape)}"
            )
        made.append(own if keep else extent)
        strides.append(base.strides[i - pad] if keep else 0)
    for i in range(pad - 1, -1, -1):
        following = strides[i + 1] * made[i + 1] if i + 1 < len(made) else 1
        strides[i] = following if made[i] == 1 else 0
    return derived(base, made, strides)


@operation("broadcast_to")
def broadcast_to(base: Tensor, *shape: Any) -> Tensor:
    """Return it expanded."""
    return expand(base, *shape)


@operation(function=False)
def expand_as(base: Tensor, other: Tensor) -> Tensor:
    """Return it expanded to another's shape."""
    return expand(base, tuple(other.shape))


@operation()
def flatten(base: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return it with several dimensions as one."""
    first, last = dimension(start_dim, base.ndim), dimension(end_dim, base.ndim)
    middle = math.prod(base.shape[first : last + 1])
    if first == last and base.ndim:
        return base
    return reshape(base, (*base.shape[:first], middle, *base.shape[last + 1 :]))


@operation()
def ravel(base: Tensor) -> Tensor:
    """Return it with one dimension."""
    return reshape(base, (-1,))


@operation()
def unflatten(base: Tensor, dim: int, sizes: Any) -> Tensor:
    """Return it with one dimension as several."""
    at = dimension(dim, base.ndim)
    wanted = list(sizes)
    if -1 in wanted:
        wanted[wanted.index(-1)] = base.shape[at] // -math.prod(wanted)
    return view_(base, (*base.shape[:at], *wanted, *base.shape[at + 1 :]))


@operation()
def narrow(base: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of a part of one dimension."""
    at = dimension(dim, base.ndim)
    begin = int(start) % base.shape[at] if start < 0 else int(start)
    if begin + length > base.shape[at]:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({base.shape[at]}).")
    shape = [*base.shape]
    shape[at] = length
    return derived(base, shape, base.strides, base.offset + begin * base.strides[at])


@operation()
def select(base: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of one place of a dimension, without it."""
    at = dimension(dim, base.ndim)
    if not -base.shape[at] <= index < base.shape[at]:
        raise IndexError(f"index {index} is out of bounds for dimension {at} with size {base.shape[at]}")
    place = int(index) % base.shape[at]
    shape, strides = [*base.shape], [*base.strides]
    stride = strides.pop(at)
    shape.pop(at)
    return derived(base, shape, strides, base.offset + place * stride)


@operation()
def as_strided(base: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Return a view of any shape and strides."""
    return derived(base, list(size), list(stride), base.offset if storage_offset is None else storage_offset)


@operation()
def split(base: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of consecutive parts."""
    extent = base.shape[dimension(dim, base.ndim)]
    parts = split_size_or_sections
    if isinstance(parts, int):
        parts = [min(parts, extent - start) for start in range(0, max(extent, 1), parts)]
    starts = [sum(parts[:i]) for i in range(len(parts))]
    return tuple(narrow(base, dim, start, length) for start, length in zip(starts, parts, strict=True))


@operation()
def chunk(base: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of so many parts, the last one perhaps smaller."""
    extent = base.shape[dimension(dim, base.ndim)]
    return split(base, max(1, -(-extent // chunks)), dim)


@operation()
def unbind(base: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return a view of every place of a dimension."""
    return tuple(select(base, dim, i) for i in range(base.shape[dimension(dim, base.ndim)]))


@operation()
def diagonal(base: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of a diagonal, as the last dimension."""
    a, b = dimension(dim1, base.ndim), dimension(dim2, base.ndim)
    length = max(0, min(base.shape[a] + min(offset, 0), base.shape[b] - max(offset, 0)))
    rest = [i for i in range(base.ndim) if i not in (a, b)]
    shape = [*(base.shape[i] for i in rest), length]
    strides = [*(base.strides[i] for i in rest), base.strides[a] + base.strides[b]]
    start = base.strides[b] * offset if offset > 0 else base.strides[a] * -offset
    return derived(base, shape, strides, base.offset + start)


@operation("contiguous", function=False)
def contiguous_(base: Tensor, memory_format: Any = None) -> Tensor:
    """Return it where it is contiguous, else a copy that is."""
    del memory_format
    return contiguous(base)


@operation("is_contiguous", function=False)
def is_contiguous_(base: Tensor, memory_format: Any = None) -> bool:
    """Say whether the elements lie row by row."""
    del memory_format
    return is_contiguous(base.shape, base.strides)


@operation(function=False)
def unfold(base: Tensor, dimension_: int, size: int, step: int) -> Tensor:
    """Return a view of overlapping windows along a dimension."""
    at = dimension(dimension_, base.ndim)
    shape, strides = [*base.shape, size], [*base.strides, base.strides[at]]
    shape[at], strides[at] = (base.shape[at] - size) // step + 1, base.strides[at] * step
    return derived(base, shape, strides)


def clone_of(base: Tensor) -> Tensor:
    """Return a copy with the base's layout, values included."""
    made = FUNCTIONS["empty_like"](base)
    copied = new(base.shape, base.dtype, base.device, base.known(), made.strides)
    return autograd.record(copied, [base])


add_method("T", property(lambda base: permute(base, list(range(base.ndim))[::-1])))
add_method("mT", property(lambda base: transpose(base, -2, -1)))
add_method("H", property(lambda base: transpose(base, 0, 1)))
add_method("size", lambda base, dim=None: base.shape if dim is None else base.shape[dim])
add_method("stride", lambda base, dim=None: base.strides if dim is None else base.strides[dim])
FUNCTIONS["Size"] = Size
