"""Matrix products, joins and rearrangements: what has a shape of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipelines.kernels.torch_standin import autograd
from pipelines.kernels.torch_standin.core import FUNCTIONS, KNOWN, Tensor, new, promoted_type
from pipelines.kernels.torch_standin.dtypes import DType, int64
from pipelines.kernels.torch_standin.errors import unsupported
from pipelines.kernels.torch_standin.registry import add_method, operation, sizes
from pipelines.kernels.torch_standin.strides import broadcast_shape, dimension
from pipelines.kernels.torch_standin.views import as_strided


def made_of(inputs: Sequence[Tensor], shape: Sequence[int], kind: DType, compute: Any = None) -> Tensor:
    """Return a contiguous result of tensors, with values where all are known and few."""
    arrays = [item.known() for item in inputs]
    values = None
    if compute is not None and math.prod(shape) <= KNOWN and all(array is not None for array in arrays):
        with np.errstate(all="ignore"):
            values = compute(*arrays)
    return autograd.record(new(shape, kind, inputs[0].device, values), inputs)


def _same_type(a: Tensor, b: Tensor) -> DType:
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")
    return a.dtype


@operation("matmul", "mm", "bmm", "mv", "dot", "inner")
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix product, broadcast over leading dimensions."""
    kind = _same_type(a, b)
    if not a.ndim or not b.ndim:
        raise RuntimeError("both arguments to matmul need to be at least 1D")
    left, right = a.shape, b.shape
    inner = right[-2] if b.ndim > 1 else right[0]
    if left[-1] != inner:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, left))} and {'x'.join(map(str, right))})"
        )
    shape = [*broadcast_shape(left[:-2], right[:-2])]
    shape += [left[-2]] if a.ndim > 1 else []
    shape += [right[-1]] if b.ndim > 1 else []
    return made_of([a, b], shape, kind, np.matmul)


add_method("__matmul__", lambda a, b: matmul(a, b))


@operation("addmm", "addmv", "baddbmm", "addbmm")
def addmm(base: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return a product added to a tensor."""
    return FUNCTIONS["add"](FUNCTIONS["mul"](base, beta), matmul(a, b), alpha=alpha)  # type: ignore[no-any-return] # from the registry


@operation("outer", "ger")
def outer(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of every pair."""
    return made_of([a, b], [a.shape[0], b.shape[0]], promoted_type([a, b]), np.outer)


@operation(method=False)
def einsum(equation: str, *operands: Any) -> Tensor:
    """Return an Einstein sum, laid out row by row."""
    tensors = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else list(operands)
    given, arrow, result = equation.replace(" ", "").partition("->")
    names = given.split(",")
    if "..." in equation or any(len(n) != t.ndim for n, t in zip(names, tensors, strict=True)):
        unsupported(f"torch.einsum({equation!r})")
    extents = {
        name: extent for n, t in zip(names, tensors, strict=True) for name, extent in zip(n, t.shape, strict=True)
    }
    if not arrow:
        letters = "".join(names)
        result = "".join(sorted(name for name in set(letters) if letters.count(name) == 1))
    return made_of(tensors, [extents[name] for name in result], promoted_type(tensors))


@operation("cat", "concat", "concatenate", method=False)
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return tensors one after the other."""
    parts = [item for item in tensors if tuple(item.shape) != (0,)] or list(tensors)
    at = dimension(dim, parts[0].ndim)
    shape = [*parts[0].shape]
    shape[at] = sum(item.shape[at] for item in parts)
    return made_of(parts, shape, promoted_type(parts), lambda *arrays: np.concatenate(arrays, at))


@operation(method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return tensors along a new dimension."""
    parts = list(tensors)
    if any(tuple(item.shape) != tuple(parts[0].shape) for item in parts):
        raise RuntimeError("stack expects each tensor to be equal size")
    at = dimension(dim, parts[0].ndim + 1)
    shape = [*parts[0].shape]
    shape.insert(at, len(parts))
    return made_of(parts, shape, promoted_type(parts), lambda *arrays: np.stack(arrays, at))


@operation(method=False)
def broadcast_tensors(*tensors: Tensor) -> list[Tensor]:
    """Return all expanded to one shape."""
    shape = broadcast_shape(*(item.shape for item in tensors))
    return [FUNCTIONS["broadcast_to"](item, shape) for item in tensors]


@operation(method=False)
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return coordinates, one tensor for each dimension."""
    parts = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)
    if indexing != "ij":
        unsupported(f"torch.meshgrid(indexing={indexing!r})")
    shape = [item.shape.numel() for item in parts]
    strides = [[1 if i == own else 0 for i in range(len(parts))] for own in range(len(parts))]
    return tuple(as_strided(item, shape, stride) for item, stride in zip(parts, strides, strict=True))


@operation(function=False)
def repeat(base: Tensor, *times: Any) -> Tensor:
    """Return copies side by side."""
    wanted = sizes(times)
    own = [1] * (len(wanted) - base.ndim) + [*base.shape]
    shape = [a * b for a, b in zip(own, wanted, strict=True)]
    return made_of([base], shape, base.dtype, lambda array: np.tile(array, wanted))


@operation()
def tile(base: Tensor, *times: Any) -> Tensor:
    """Return copies side by side, as NumPy's."""
    wanted = sizes(times)
    return repeat(base, [1] * (base.ndim - len(wanted)) + wanted)


@operation()
def repeat_interleave(base: Tensor, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Return each element several times; tensors of counts must be known, or their sum given."""
    if dim is None:
        base, dim = base.reshape(-1), 0
    shape = [*base.shape]
    if isinstance(repeats, Tensor) and (repeats.known() is not None or output_size is None):
        repeats = repeats.values("repeat_interleave()")
    if isinstance(repeats, Tensor):
        shape[dim] = output_size or 0
        return made_of([base], shape, base.dtype)
    shape[dim] = int(np.sum(np.broadcast_to(repeats, shape[dim])))
    return made_of([base], shape, base.dtype, lambda array: np.repeat(array, repeats, dim))


@operation()
def flip(base: Tensor, *dims: Any) -> Tensor:
    """Return it backwards."""
    return made_of([base], base.shape, base.dtype, lambda array: np.flip(array, tuple(sizes(dims))))


@operation()
def roll(base: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Return it rotated."""
    return made_of([base], base.shape, base.dtype, lambda array: np.roll(array, shifts, dims))


@operation()
def tril(base: Tensor, diagonal: int = 0) -> Tensor:
    """Return the lower triangle."""
    return made_of([base], base.shape, base.dtype, lambda array: np.tril(array, diagonal))


@operation()
def triu(base: Tensor, diagonal: int = 0) -> Tensor:
    """Return the upper triangle."""
    return made_of([base], base.shape, base.dtype, lambda array: np.triu(array, diagonal))


@operation()
def diag(base: Tensor, diagonal: int = 0) -> Tensor:
    """Return a vector's matrix, or a matrix's diagonal."""
    extents = [base.shape[0] + abs(diagonal)] * 2 if base.ndim == 1 else FUNCTIONS["diagonal"](base, diagonal).shape
    return made_of([base], extents, base.dtype, lambda array: np.diag(array, diagonal))


@operation(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Return matrices along a diagonal, their values not known."""
    return made_of(tensors, [sum(t.shape[i] for t in tensors) for i in (0, 1)], promoted_type(tensors))


@operation()
def multinomial(base: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Return random places, which are not known."""
    del replacement, generator
    return new([*base.shape[:-1], num_samples], int64, base.device)
