"""Indexing: slices and numbers give views, index tensors and masks give copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.kernels.torch_standin import autograd
from pipelines.kernels.torch_standin.core import FUNCTIONS, KNOWN, Tensor, new
from pipelines.kernels.torch_standin.dtypes import BOOL, INTEGER, of_scalar
from pipelines.kernels.torch_standin.errors import unknown, unsupported
from pipelines.kernels.torch_standin.registry import add_method, operation
from pipelines.kernels.torch_standin.strides import Size, broadcast_shape, dimension
from pipelines.kernels.torch_standin.views import derived


def _is_number(item: Any) -> bool:
    return hasattr(item, "__index__") and not isinstance(item, bool | Tensor)


def index(base: Tensor, key: Any) -> Tensor:
    """Return ``base[key]``."""
    basic, advanced = _basic(base, key)
    return _gather(basic, advanced) if advanced else basic


FUNCTIONS["_index"] = index


def _basic(base: Tensor, key: Any) -> tuple[Tensor, dict[int, Any]]:
    """Apply the slices and numbers; return the view with the index arrays that are left, by dimension."""
    items = _expanded(base, key if isinstance(key, tuple) else (key,))
    shape: list[int] = []
    strides: list[int] = []
    advanced: dict[int, Any] = {}
    offset, at = base.offset, 0
    for item in items:
        if item is None:
            shape.append(1)
            strides.append(base.shape[at] * base.strides[at] if at < base.ndim else 1)
        elif isinstance(item, slice):
            start, stop, step = item.indices(base.shape[at])
            if step <= 0:
                raise ValueError("step must be greater than zero")
            shape.append(max(0, -(-(stop - start) // step)))
            strides.append(base.strides[at] * step)
            offset += min(start, base.shape[at]) * base.strides[at]
            at += 1
        elif _is_number(item):
            place = item.__index__()
            if not -base.shape[at] <= place < base.shape[at]:
                raise IndexError(f"index {place} is out of bounds for dimension {at} with size {base.shape[at]}")
            offset += place % base.shape[at] * base.strides[at]
            at += 1
        else:
            arrays = _arrays(item)
            for array in arrays:
                advanced[len(shape)] = array
                shape.append(base.shape[at])
                strides.append(base.strides[at])
                at += 1
    return derived(base, shape, strides, offset), advanced


def _expanded(base: Tensor, items: tuple[Any, ...]) -> list[Any]:
    """Write out the ellipsis and the dimensions left out at the end."""
    used = sum(_width(item) for item in items)
    if used > base.ndim:
        raise IndexError(f"too many indices for tensor of dimension {base.ndim}")
    rest = [slice(None)] * (base.ndim - used)
    for i, item in enumerate(items):
        if item is Ellipsis:
            return [*items[:i], *rest, *(other for other in items[i + 1 :] if other is not Ellipsis)]
    return [*items, *rest]


def _width(item: Any) -> int:
    """Return how many dimensions an index takes."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Tensor) and item.dtype.category == BOOL:
        return item.ndim
    return 1


def _arrays(item: Any) -> list[Any]:
    """Return an index as integer tensors or arrays: a mask becomes one for each of its dimensions."""
    if isinstance(item, list | range | np.ndarray):
        item = FUNCTIONS["tensor"](list(item))
    if not isinstance(item, Tensor) or item.dtype.category > INTEGER:
        unsupported(f"indexing by {type(item).__name__}")
    if item.dtype.category != BOOL:
        return [item]
    return [FUNCTIONS["tensor"](part) for part in np.nonzero(item.values("indexing by a mask"))]


def _gather(base: Tensor, advanced: dict[int, Any]) -> Tensor:
    shape = broadcast_shape(*(item.shape for item in advanced.values()))
    places = sorted(advanced)
    together = places == list(range(places[0], places[-1] + 1))
    first = places[0] if together else 0
    rest = [extent for i, extent in enumerate(base.shape) if i not in advanced]
    made = Size([*rest[:first], *shape, *rest[first:]])
    known, indices = base.known(), {i: item.known() for i, item in advanced.items()}
    values = None
    if known is not None and made.numel() <= KNOWN and all(item is not None for item in indices.values()):
        values = known[tuple(indices.get(i, slice(None)) for i in range(base.ndim))]
    return autograd.record(new(made, base.dtype, base.device, values), [base])


def assign(base: Tensor, key: Any, value: Any) -> None:
    """Carry out ``base[key] = value``."""
    with autograd.NoGrad():
        try:
            target, advanced = _basic(base, key)
        except RuntimeError:  # a mask that is not known writes somewhere
            base.forget()
            return
        given = value.known() if isinstance(value, Tensor) else np.asarray(value)
        if not advanced:
            target.write(given)
            return
        own, indices = target.known(), {i: item.known() for i, item in advanced.items()}
        if own is None or given is None or any(item is None for item in indices.values()):
            base.forget()
        else:
            own[tuple(indices.get(i, slice(None)) for i in range(target.ndim))] = given


add_method("__setitem__", assign)


@operation()
def index_select(base: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the places of a dimension that an index tensor names."""
    at = dimension(dim, base.ndim)
    return _gather(base, {at: index})


@operation()
def gather(base: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Return, for each element of ``index``, the element that it names along a dimension."""
    del sparse_grad
    known, places = base.known(), index.known()
    values = None
    if known is not None and places is not None:
        part = known[tuple(slice(0, e) if i != dim % base.ndim else slice(None) for i, e in enumerate(index.shape))]
        values = np.take_along_axis(part, places, dim)
    return autograd.record(new(index.shape, base.dtype, base.device, values), [base])


@operation()
def take_along_dim(base: Tensor, indices: Tensor, dim: int) -> Tensor:
    """Return ``gather``."""
    return gather(base, dim, indices)


@operation()
def masked_select(base: Tensor, mask: Tensor) -> Tensor:
    """Return the elements under a mask, whose number must be known."""
    return index(base, mask)


@operation()
def nonzero(base: Tensor, *, as_tuple: bool = False) -> Any:
    """Return where the values are not 0, which must be known."""
    found = np.nonzero(base.values("nonzero()"))
    columns = tuple(new([len(part)], of_scalar(1), base.device, part) for part in found)
    if as_tuple:
        return columns
    places = np.stack(found) if found else None
    made = new([base.ndim, len(found[0])], of_scalar(1), base.device, places)
    return FUNCTIONS["t"](made)


@operation()
def unique(base: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:  # noqa: A002 - torch's own name
    """Return the distinct values, which must be known."""
    del sorted
    values = base.values("unique()")
    distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    parts = [new(distinct.shape, base.dtype, base.device, distinct)]
    if return_inverse:
        parts.append(new(base.shape, of_scalar(1), base.device, inverse.reshape(values.shape)))
    if return_counts:
        parts.append(new(counts.shape, of_scalar(1), base.device, counts))
    return parts[0] if len(parts) == 1 else tuple(parts)


def read_number(base: Tensor, what: str) -> Any:
    """Return the only element as a number of Python's."""
    if base.shape.numel() != 1:
        raise RuntimeError(f"a Tensor with {base.shape.numel()} elements cannot be converted to Scalar")
    known = base.known()
    return unknown(what) if known is None else known.reshape(()).item()


add_method("item", lambda base: read_number(base, "item()"))
add_method("__bool__", lambda base: bool(read_number(base, "bool() of a tensor")))
add_method("__int__", lambda base: int(read_number(base, "int() of a tensor")))
add_method("__float__", lambda base: float(read_number(base, "float() of a tensor")))
add_method("__index__", lambda base: int(read_number(base, "a tensor as an index")))
add_method("tolist", lambda base: base.values("tolist()").tolist())
add_method("numpy", lambda base, **_: base.values("numpy()"))
