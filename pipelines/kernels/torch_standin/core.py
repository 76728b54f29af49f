"""A tensor without data: type, shape, strides and an address, and real values where they are few and known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pipelines.kernels.torch_standin import autograd
from pipelines.kernels.torch_standin.device import Device
from pipelines.kernels.torch_standin.dtypes import FLOAT, DType, result_type
from pipelines.kernels.torch_standin.errors import MissingError, unknown
from pipelines.kernels.torch_standin.strides import (
    Size,
    broadcast_shape,
    contiguous_strides,
    is_contiguous,
    is_dense,
    result_strides,
)

KNOWN = 1 << 16
"""Elements up to which values are kept: lengths, offsets and indices that launch code computes with."""
_ALIGNMENT = 512  # of torch's caching allocator on CUDA
_MAX_BYTES = 1 << 47
_next_address = [0x7F00_0000_0000]

Array = np.ndarray[Any, Any]
FUNCTIONS: dict[str, Any] = {}
"""What is in the namespace ``torch``, by name."""


class Storage:
    """An address range; ``values`` are its elements as ``kind``, None where they are not known."""

    __slots__ = ("address", "kind", "nbytes_", "values")

    def __init__(self, elements: int, kind: DType, values: Array | None) -> None:
        self.nbytes_ = elements * kind.itemsize
        if self.nbytes_ >= _MAX_BYTES:
            raise MemoryError(f"CUDA out of memory. Tried to allocate {self.nbytes_} bytes")
        self.kind = kind
        self.values = values
        self.address = _next_address[0]
        _next_address[0] += max(1, math.ceil(self.nbytes_ / _ALIGNMENT)) * _ALIGNMENT

    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self.nbytes_

    size = nbytes

    def data_ptr(self) -> int:
        """Return the first element's address."""
        return self.address


class Tensor:
    """torch's ``Tensor``; most of its methods are put on it by the modules that implement them."""

    grad: Tensor | None = None
    node: autograd.Node | None = None
    output_number = 0
    requires_grad = False
    retains_grad = False
    names: tuple[None, ...] = ()

    def __init__(self, storage: Storage, kind: DType, shape: Sequence[int], strides: Sequence[int], where: Any) -> None:
        self.storage, self.offset = storage, 0
        self.dtype: DType = kind
        self.shape = Size(shape)
        self.strides = tuple(strides)
        self.device: Device = where

    def __getattr__(self, name: str) -> Any:
        raise MissingError(f"torch.Tensor.{name}")

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return len(self.shape)

    def data_ptr(self) -> int:
        """Return the first element's address."""
        return self.storage.address + self.offset * self.dtype.itemsize if 0 not in self.shape else 0

    def known(self) -> Array | None:
        """Return the values, as a view that writes through, or None."""
        values = self.storage.values
        if values is None or self.storage.kind is not self.dtype:
            return None
        strides = [stride * values.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, strides)

    def values(self, what: str) -> Array:
        """Return the values.

        Raises:
            UnknownValueError: they are not known; ``what`` asks for them.
        """
        found = self.known()
        return unknown(what) if found is None else found

    def forget(self) -> None:
        """Take the values for unknown from now on."""
        self.storage.values = None

    def write(self, values: Array | None) -> Tensor:
        """Write values in place, or unknown ones."""
        own = self.known()
        if own is None or values is None:
            self.forget()
        else:
            with np.errstate(all="ignore"):
                own[...] = values
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(self.shape[0])])

    def __getitem__(self, index: Any) -> Any:
        return FUNCTIONS["_index"](self, index)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        known = self.known()
        body = "..., size=" + repr(tuple(self.shape)) if known is None else np.array2string(known, separator=", ")
        return f"tensor({body}, device='{self.device}', dtype={self.dtype})"

    def __format__(self, spec: str) -> str:
        if self.ndim or not spec:
            return repr(self)
        known = self.known()
        if known is not None:
            return format(known.item(), spec)
        try:
            return format(math.nan, spec)  # only shown, so that a message cannot lose the launches after it
        except ValueError:
            return "unknown"


Tensor.__module__ = "torch"


def new(
    shape: Sequence[int], kind: DType, where: Device, values: Array | None = None, strides: Sequence[int] | None = None
) -> Tensor:
    """Make a tensor with storage of its own; values that are too many are dropped."""
    extents = [int(extent) for extent in shape]
    if any(extent < 0 for extent in extents):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(extents)}: {extents}")
    count = math.prod(extents)
    made = contiguous_strides(extents) if strides is None else tuple(strides)
    length = count
    if strides is not None and count:
        length = 1 + sum((e - 1) * s for e, s in zip(extents, made, strict=True))
    kept: Array | None = None
    if values is not None and length <= KNOWN:
        kept = np.zeros(length, kind.array)
        with np.errstate(all="ignore"):
            as_shaped = np.lib.stride_tricks.as_strided(kept, extents, [s * kept.itemsize for s in made])
            as_shaped[...] = values
    return Tensor(Storage(length, kind, kept), kind, extents, made, where)


def view(base: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Tensor:
    """Make a tensor over the same storage; its gradient is one of the base's layout."""
    made = Tensor(base.storage, base.dtype, shape, strides, base.device)
    made.offset = base.offset if offset is None else offset
    return made


def elementwise(
    compute: Callable[..., Any] | None, inputs: Sequence[Any], kind: DType | None = None, as_kind: DType | None = None
) -> Tensor:
    """Return an elementwise operation's result, by torch's rules of broadcasting, promotion and layout.

    Args:
        compute: makes the values from arrays of the promoted type; None where they are never known.
        inputs: tensors and numbers.
        kind: the result's type, where it is not the promoted one.
        as_kind: the type to compute in, where it is not the promoted one.
    """
    tensors = [item for item in inputs if isinstance(item, Tensor)]
    promoted = as_kind or promoted_type(inputs)
    operands: list[Any] = [(t.shape, t.strides, t.dtype.itemsize) for t in tensors]
    operands += [((), (), 8) for item in inputs if not isinstance(item, Tensor)]
    shape = broadcast_shape(*(t.shape for t in tensors))
    values: Array | None = None
    if compute is not None and shape.numel() <= KNOWN:
        arrays = [item.known() if isinstance(item, Tensor) else np.asarray(item) for item in inputs]
        if all(array is not None for array in arrays):
            with np.errstate(all="ignore"):
                values = compute(*(array.astype(promoted.array) for array in arrays if array is not None))
    where = next((t.device for t in tensors if t.ndim), tensors[0].device)
    made = new(shape, kind or promoted, where, values, result_strides(shape, operands))
    return autograd.record(made, tensors)


def promoted_type(inputs: Sequence[Any]) -> DType:
    """Return the type that operands are promoted to."""
    tensors = [item for item in inputs if isinstance(item, Tensor)]
    return result_type(
        [t.dtype for t in tensors if t.ndim],
        [t.dtype for t in tensors if not t.ndim],
        [item for item in inputs if not isinstance(item, Tensor)],
    )


def empty_like(base: Tensor, kind: DType | None = None, where: Device | None = None) -> Tensor:
    """Return a tensor with the base's layout: its own strides where it is dense, else their order."""
    strides = base.strides
    if not is_dense(base.shape, strides):
        strides = result_strides(base.shape, [(base.shape, strides, base.dtype.itemsize)])
    return new(base.shape, kind or base.dtype, where or base.device, None, strides)


def contiguous(base: Tensor) -> Tensor:
    """Return the tensor itself where it is contiguous, else a copy that is."""
    if is_contiguous(base.shape, base.strides):
        return base
    return autograd.record(new(base.shape, base.dtype, base.device, base.known()), [base])


def wants_gradient(tensor: Any) -> bool:
    """Say whether an operation on this has to be recorded."""
    return isinstance(tensor, Tensor) and tensor.requires_grad and tensor.dtype.category >= FLOAT
