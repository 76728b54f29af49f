"""Reductions, scans, sorting and products: their shapes and types, and values where all are known."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from pipelines.kernels.torch_standin import autograd
from pipelines.kernels.torch_standin.arithmetic import floating
from pipelines.kernels.torch_standin.core import FUNCTIONS, Array, Tensor, elementwise, new
from pipelines.kernels.torch_standin.dtypes import DTYPES, INTEGER, DType, bool_, int64
from pipelines.kernels.torch_standin.registry import operation, sizes
from pipelines.kernels.torch_standin.strides import dimension
from pipelines.kernels.torch_standin.views import expand, unsqueeze

Found = namedtuple("Found", ("values", "indices"))


def _dims(base: Tensor, dim: Any) -> list[int]:
    if dim is None or (isinstance(dim, tuple | list) and not dim):
        return list(range(base.ndim))
    return [dimension(item, base.ndim) for item in sizes((dim,))]


def _reduced(base: Tensor, dims: list[int], keepdim: bool) -> list[int]:
    if keepdim:
        return [1 if i in dims else extent for i, extent in enumerate(base.shape)]
    return [extent for i, extent in enumerate(base.shape) if i not in dims]


def reduce(base: Tensor, dim: Any, keepdim: bool, kind: DType, compute: Callable[..., Any] | None) -> Tensor:
    """Return a reduction over some dimensions, over all where ``dim`` is None."""
    dims = _dims(base, dim)
    known = base.known()
    values = None
    if known is not None and compute is not None and base.ndim:
        with np.errstate(all="ignore"):
            values = compute(known.astype(kind.array), axis=tuple(dims), keepdims=keepdim)
    elif known is not None and compute is not None:
        values = known
    return new(_reduced(base, dims, keepdim), kind, base.device, values)


def _spread(base: Tensor, dims: list[int], keepdim: bool, kind: DType) -> Callable[[Tensor], list[Any]]:
    """Return the gradient of a sum: what comes, expanded without a copy, so its strides there are 0."""

    def backward(gradient: Tensor) -> list[Any]:
        for at in () if keepdim else sorted(dims):
            gradient = unsqueeze(gradient, at)
        return [expand(gradient.to(kind), tuple(base.shape))]

    return backward


@operation("sum")
def sum_(base: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return sums; those of integers are int64."""
    kind = dtype or (int64 if base.dtype.category <= INTEGER else base.dtype)
    made = reduce(base, dim, keepdim, kind, np.sum)
    return autograd.record(made, [base], _spread(base, _dims(base, dim), keepdim, base.dtype))


@operation("mean")
def mean(base: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return means."""
    kind = dtype or base.dtype
    if kind.category <= INTEGER:
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex"
        )
    made = reduce(base, dim, keepdim, kind, np.mean)
    dims = _dims(base, dim)
    spread = _spread(base, dims, keepdim, base.dtype)
    count = math.prod(base.shape[i] for i in dims)
    return autograd.record(made, [base], lambda gradient: [spread(gradient)[0] / max(count, 1)])


def _simple(name: str, compute: Callable[..., Any], rule: Callable[[Tensor], DType]) -> None:
    def call(base: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        return autograd.record(reduce(base, dim, keepdim, dtype or rule(base), compute), [base])

    call.__name__ = name
    operation(name)(call)


def _logsumexp(values: Array, axis: Any, keepdims: bool) -> Any:
    return np.log(np.sum(np.exp(values), axis=axis, keepdims=keepdims))


def _deviation(power: float) -> Callable[..., Tensor]:
    def call(
        base: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, correction: Any = None
    ) -> Tensor:
        less = (1 if unbiased else 0) if correction is None else correction
        made = reduce(base, dim, keepdim, base.dtype, lambda v, **k: np.var(v, ddof=less, **k) ** power)
        return autograd.record(made, [base])

    return call


_simple("prod", np.prod, lambda base: int64 if base.dtype.category <= INTEGER else base.dtype)
_simple("amax", np.max, lambda base: base.dtype)
_simple("amin", np.min, lambda base: base.dtype)
_simple("any", np.any, lambda _: bool_)
_simple("all", np.all, lambda _: bool_)
_simple("logsumexp", _logsumexp, lambda base: floating([base]))
_simple("count_nonzero", np.count_nonzero, lambda _: int64)
operation("var")(_deviation(1.0))
operation("std")(_deviation(0.5))


@operation("norm", "vector_norm")
def norm(base: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> Tensor:
    """Return norms."""
    compute = (lambda v, **k: np.sqrt(np.sum(v * v, **k))) if p in (2, "fro") else None
    return autograd.record(reduce(base, dim, keepdim, base.dtype, compute), [base])


def _extreme(name: str) -> None:
    compute, place = getattr(np, name), getattr(np, f"arg{name}")

    def call(base: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Tensor):
            return FUNCTIONS[f"{name}imum"](base, dim)
        values = autograd.record(reduce(base, dim, keepdim, base.dtype, compute), [base])
        return values if dim is None else Found(values, index(base, dim, keepdim))

    def index(base: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        dims, known = _dims(base, dim), base.known()
        values = None if known is None else place(known, axis=None if dim is None else dims[0], keepdims=keepdim)
        return new(_reduced(base, dims, keepdim), int64, base.device, None if values is None else np.asarray(values))

    call.__name__, index.__name__ = name, f"arg{name}"
    operation(name)(call)
    operation(f"arg{name}")(index)


_extreme("max")
_extreme("min")


def _scan(name: str, compute: Callable[..., Any]) -> None:
    def call(base: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
        kind = dtype or (int64 if base.dtype.category <= INTEGER else base.dtype)
        known = base.known()
        values = None if known is None else compute(known.astype(kind.array), axis=dim if base.ndim else None)
        return autograd.record(new(base.shape, kind, base.device, values), [base])

    call.__name__ = name
    operation(name)(call)


_scan("cumsum", np.cumsum)
_scan("cumprod", np.cumprod)


@operation()
def diff(base: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    """Return differences of neighbours."""
    at = dimension(dim, base.ndim)
    for _ in range(n):
        base = FUNCTIONS["sub"](base.narrow(at, 1, base.shape[at] - 1), base.narrow(at, 0, base.shape[at] - 1))
    return base


@operation("sort")
def sort(base: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return the values in order, with their places."""
    del stable
    known = base.known()
    order = None
    if known is not None:
        order = np.argsort(-known.astype(np.float64) if descending else known, axis=dim, kind="stable")
    values = None if known is None or order is None else np.take_along_axis(known, order, dim)
    made = autograd.record(new(base.shape, base.dtype, base.device, values), [base])
    return Found(made, new(base.shape, int64, base.device, order))


@operation()
def argsort(base: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return the places of the values in order."""
    found: Tensor = sort(base, dim, descending, stable).indices
    return found


@operation()
def topk(base: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002 - torch's own name
    """Return the first values in order, with their places."""
    del sorted
    values, indices = sort(base, dim, largest)
    first = [FUNCTIONS["narrow"](item, dim, 0, int(k)) for item in (values, indices)]
    return Found(*(autograd.record(new(x.shape, x.dtype, x.device, x.known()), [base]) for x in first))


@operation()
def bincount(base: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """Count each value; how many there are must be known."""
    del weights
    counts = np.bincount(base.values("bincount()"), minlength=minlength)
    return new(counts.shape, int64, base.device, counts)


@operation()
def searchsorted(boundaries: Tensor, base: Any, *, right: bool = False, out_int32: bool = False) -> Tensor:
    """Return where the values would be put in."""
    known = boundaries.known()

    def compute(values: Array) -> Any:
        return np.searchsorted(known if known is not None else values, values, "right" if right else "left")

    kind = DTYPES["int32"] if out_int32 else int64
    return elementwise(compute if known is not None else None, [base], kind)


def _softmax(values: Array, axis: int) -> Any:
    raised = np.exp(values - np.max(values, axis=axis, keepdims=True))
    return raised / np.sum(raised, axis=axis, keepdims=True)


@operation("softmax")
def softmax(base: Tensor, dim: int | None = None, dtype: DType | None = None, **_: Any) -> Tensor:
    """Return the softmax along a dimension."""
    at = dim if dim is not None else -1
    known = base.known()
    values = None if known is None or not base.ndim else _softmax(known.astype(np.float64), at)
    return autograd.record(new(base.shape, dtype or base.dtype, base.device, values), [base])


@operation("log_softmax")
def log_softmax(base: Tensor, dim: int | None = None, dtype: DType | None = None, **_: Any) -> Tensor:
    """Return the logarithm of the softmax."""
    return FUNCTIONS["log"](softmax(base, dim, dtype))  # type: ignore[no-any-return] # from the registry


@operation("equal")
def equal(base: Tensor, other: Tensor) -> bool:
    """Say that results agree: there are none to compare."""
    return tuple(base.shape) == tuple(other.shape)
