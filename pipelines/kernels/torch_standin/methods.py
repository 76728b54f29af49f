"""What else a tensor answers: conversions, facts, filling in place, gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pipelines.kernels.torch_standin import autograd
from pipelines.kernels.torch_standin.core import FUNCTIONS, Tensor, contiguous, new, view
from pipelines.kernels.torch_standin.creation import random_numbers
from pipelines.kernels.torch_standin.device import CPU, CUDA, Device, place
from pipelines.kernels.torch_standin.dtypes import ALIASES, DTYPES, DType, promote_types, read_dtype, result_type
from pipelines.kernels.torch_standin.registry import add_method, operation
from pipelines.kernels.torch_standin.strides import is_dense
from pipelines.kernels.torch_standin.views import clone_of


def convert(base: Tensor, kind: DType, where: Device, copy: bool = False) -> Tensor:
    """Return it as another type or elsewhere; itself where nothing changes."""
    if kind is base.dtype and where == base.device and not copy:
        return base
    made = FUNCTIONS["empty_like"](base)
    return autograd.record(
        new(base.shape, kind, where, base.known(), made.strides), [base], lambda g: [g.to(base.dtype)]
    )


@operation("to", function=False)
def to(
    base: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    copy: bool = False,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return it as a type, on a device, or as another tensor is."""
    for item in args:
        if isinstance(item, Tensor):
            dtype, device = item.dtype, item.device
        elif isinstance(item, DType):
            dtype = item
        elif isinstance(item, str | Device) or (isinstance(item, int) and not isinstance(item, bool)):
            device = item
    del non_blocking
    kind, where = read_dtype(dtype) if dtype else base.dtype, place(device) if device is not None else base.device
    return _laid_out(base, convert(base, kind, where, copy), memory_format)


def _laid_out(base: Tensor, made: Tensor, memory_format: Any) -> Tensor:
    """Return a converted tensor in the format that was asked for; one that needed no conversion stays as it is."""
    return contiguous(made) if made is not base and str(memory_format) == "torch.contiguous_format" else made


def _converter(kind: DType) -> Any:
    return lambda base, memory_format=None: _laid_out(base, convert(base, kind, base.device), memory_format)


for _name in ("half", "float", "double", "short", "int", "long", "bool", "bfloat16", "cfloat"):
    setattr(Tensor, _name, _converter(DTYPES[ALIASES.get(_name, _name)]))
add_method("char", _converter(DTYPES["int8"]))
add_method("byte", _converter(DTYPES["uint8"]))


@operation("type", function=False)
def type_(base: Tensor, dtype: Any = None) -> Any:
    """Return it as a type, or the old name of its own."""
    if dtype is None:
        return f"torch.{'cuda.' if base.device.type == 'cuda' else ''}{base.dtype.name}"
    return convert(base, read_dtype(dtype), base.device)


@operation(function=False)
def type_as(base: Tensor, other: Tensor) -> Tensor:
    """Return it as another is."""
    return convert(base, other.dtype, other.device)


@operation(function=False)
def cuda(base: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """Return it on the GPU."""
    del non_blocking
    return convert(base, base.dtype, CUDA if device is None else place(device))


@operation(function=False)
def cpu(base: Tensor) -> Tensor:
    """Return it on the host."""
    return convert(base, base.dtype, CPU)


@operation()
def clone(base: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return a copy."""
    if str(memory_format) == "torch.contiguous_format":
        return autograd.record(new(base.shape, base.dtype, base.device, base.known()), [base])
    return clone_of(base)


@operation()
def detach(base: Tensor) -> Tensor:
    """Return it without its history."""
    made = view(base, base.shape, base.strides)
    made.dtype = base.dtype
    return made


@operation(function=False)
def copy_(base: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Take over values."""
    del non_blocking
    return base.write(source.known() if isinstance(source, Tensor) else np.asarray(source))


@operation(function=False)
def fill_(base: Tensor, value: Any) -> Tensor:
    """Set all values."""
    return refill(base, value.known() if isinstance(value, Tensor) else np.asarray(value))


@operation(function=False)
def zero_(base: Tensor) -> Tensor:
    """Set all values to 0."""
    return refill(base, np.asarray(0))


def refill(base: Tensor, values: Any) -> Tensor:
    """Set all values, after which those of a whole storage are known again."""
    storage = base.storage
    whole = is_dense(base.shape, base.strides) and base.shape.numel() * base.dtype.itemsize == storage.nbytes_
    if values is not None and storage.values is None and whole:
        storage.kind = base.dtype
        storage.values = new(base.shape, base.dtype, base.device, np.zeros(1, base.dtype.array)).storage.values
    return base.write(values)


def _random(name: str, make: Any) -> None:
    def call(base: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        del generator
        return base.write(make(base.shape, *args, **kwargs) if base.known() is not None else None)

    call.__name__ = name
    operation(name, function=False)(call)


def _uniform(shape: Any, a: float = 0.0, b: float = 1.0, **more: float) -> Any:
    return random_numbers().uniform(more.get("from", a), more.get("to", b), shape)


def _integers(shape: Any, a: int = 0, b: int | None = None, **more: int) -> Any:
    low, high = more.get("from", a if b is not None else 0), more.get("to", b if b is not None else a or 1 << 24)
    return random_numbers().integers(low, high, shape)


_random("normal_", lambda shape, mean=0.0, std=1.0: random_numbers().normal(mean, std, shape))
_random("uniform_", _uniform)
_random("random_", _integers)
_random("bernoulli_", lambda shape, p=0.5: random_numbers().random(shape) < p)
_random("exponential_", lambda shape, lambd=1.0: random_numbers().exponential(1 / lambd, shape))


@operation()
def bernoulli(base: Tensor, p: Any = None, **_: Any) -> Tensor:
    """Return random 0s and 1s, which are not known."""
    del p
    return FUNCTIONS["empty_like"](base)  # type: ignore[no-any-return] # from the registry


def _scatter(base: Tensor, dim: int, index: Tensor, src: Any, **_: Any) -> Tensor:
    """Write values at places along a dimension."""
    own, places = base.known(), index.known()
    given = src.known() if isinstance(src, Tensor) else src
    if own is None or places is None or given is None or _.get("reduce"):
        base.forget()
        return base
    np.put_along_axis(own, places, given, dim)
    return base


def _forgetting(base: Tensor, *_: Any, **__: Any) -> Tensor:
    """Change values in a way that is not followed."""
    base.forget()
    return base


operation("scatter_", function=False)(_scatter)
for _name in (
    "scatter_add_",
    "scatter_reduce_",
    "index_add_",
    "index_copy_",
    "index_fill_",
    "masked_scatter_",
    "index_put_",
):
    operation(_name, function=False)(_forgetting)


def _copying(name: str) -> Callable[..., Tensor]:
    def call(base: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        made: Tensor = getattr(clone_of(base), f"{name}_")(*args, **kwargs)
        return made

    return call


for _name in ("scatter", "scatter_add", "index_add", "index_copy", "index_fill", "scatter_reduce"):
    operation(_name)(_copying(_name))


@operation(function=False)
def requires_grad_(base: Tensor, requires_grad: bool = True) -> Tensor:
    """Say whether a gradient is wanted."""
    base.requires_grad = requires_grad
    return base


@operation(function=False)
def retain_grad(base: Tensor) -> None:
    """Keep the gradient although it is no leaf."""
    base.retains_grad = True


@operation(function=False)
def backward(base: Tensor, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
    """Run backwards from here."""
    del args, kwargs
    if gradient is None and base.shape.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    FUNCTIONS["_backward"](base, gradient)


@operation(function=False)
def untyped_storage(base: Tensor) -> Any:
    """Return the storage."""
    return base.storage


def _set_data(base: Tensor, other: Tensor) -> None:
    base.storage, base.offset, base.dtype = other.storage, other.offset, other.dtype
    base.shape, base.strides, base.device = other.shape, other.strides, other.device


_FACTS: dict[str, Any] = {
    "is_cuda": lambda base: base.device.type == "cuda",
    "is_cpu": lambda base: base.device.type == "cpu",
    "is_meta": lambda base: base.device.type == "meta",
    "is_leaf": lambda base: base.node is None,
    "is_sparse": lambda _: False,
    "is_quantized": lambda _: False,
    "is_nested": lambda _: False,
    "layout": lambda _: FUNCTIONS["strided"],
    "grad_fn": lambda base: base.node,
    "itemsize": lambda base: base.dtype.itemsize,
    "nbytes": lambda base: base.shape.numel() * base.dtype.itemsize,
}
for _name, _fact in _FACTS.items():
    setattr(Tensor, _name, property(_fact))
add_method("data", property(detach, _set_data))
_ANSWERS: dict[str, Any] = {
    "numel": lambda base: base.shape.numel(),
    "nelement": lambda base: base.shape.numel(),
    "dim": lambda base: len(base.shape),
    "ndimension": lambda base: len(base.shape),
    "element_size": lambda base: base.dtype.itemsize,
    "storage_offset": lambda base: base.offset,
    "is_floating_point": lambda base: base.dtype.is_floating_point,
    "is_complex": lambda base: base.dtype.is_complex,
    "is_signed": lambda base: base.dtype.is_signed,
    "get_device": lambda base: base.device.index if base.device.index is not None else -1,
    "pin_memory": lambda base: base,
    "is_pinned": lambda _: False,
    "is_non_overlapping_and_dense": lambda base: is_dense(base.shape, base.strides),
    "record_stream": lambda *_: None,
    "register_hook": lambda *_: contextlib.nullcontext(),
    "share_memory_": lambda base: base,
    "detach_": lambda base: base,
}
for _name, _answer in _ANSWERS.items():
    setattr(Tensor, _name, _answer)
FUNCTIONS["numel"] = _ANSWERS["numel"]
FUNCTIONS["is_floating_point"], FUNCTIONS["is_complex"] = _ANSWERS["is_floating_point"], _ANSWERS["is_complex"]
FUNCTIONS["promote_types"] = promote_types
FUNCTIONS["can_cast"] = lambda kind, to: kind.category <= to.category
FUNCTIONS["result_type"] = lambda *items: result_type(
    [i.dtype for i in items if isinstance(i, Tensor) and i.ndim],
    [i.dtype for i in items if isinstance(i, Tensor) and not i.ndim],
    [i for i in items if not isinstance(i, Tensor)],
)
