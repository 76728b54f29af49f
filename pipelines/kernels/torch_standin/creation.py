"""Making tensors: creation functions, random ones with NumPy's generator, and tensors from Python's values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pipelines.kernels.torch_standin.core import FUNCTIONS, KNOWN, Array, Tensor, empty_like, new
from pipelines.kernels.torch_standin.device import CPU, place
from pipelines.kernels.torch_standin.dtypes import DType, bool_, default_dtype, from_array, int64, of_scalar, read_dtype
from pipelines.kernels.torch_standin.errors import unsupported
from pipelines.kernels.torch_standin.registry import add_method, operation, sizes

SEED = 0
_generator = [np.random.default_rng(SEED)]
_IGNORED = ("layout", "pin_memory", "memory_format", "names", "generator")


def random_numbers() -> np.random.Generator:
    """Return where random values come from."""
    return _generator[0]


def manual_seed(seed: int) -> Generator:
    """Start the random numbers afresh."""
    _generator[0] = np.random.default_rng(abs(int(seed)))
    return Generator()


class Generator:
    """``torch.Generator``: there is one sequence of random numbers here."""

    def __init__(self, device: Any = "cpu") -> None:
        self.device = place(device)

    def manual_seed(self, seed: int) -> Generator:
        """Start the random numbers afresh."""
        return manual_seed(seed)

    def initial_seed(self) -> int:
        """Return the seed."""
        return SEED

    seed = initial_seed


def _finish(made: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        made.requires_grad = True
    return made


def _checked(options: dict[str, Any], name: str) -> None:
    for option in options:
        if option not in _IGNORED:
            unsupported(f"torch.{name}({option}=...)")


def _create(name: str, fill: Callable[..., Any] | None) -> None:
    """Enter ``torch.NAME(*size)``, ``NAME_like`` and ``Tensor.new_NAME``."""

    def values(shape: list[int], kind: DType) -> Array | None:
        return fill(shape, kind) if fill is not None and math.prod(shape) <= KNOWN else None

    def create(
        *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, out: Any = None, **more: Any
    ) -> Tensor:
        if "size" in more:
            size = (more.pop("size"),)
        _checked(more, name)
        shape, kind = sizes(size), read_dtype(dtype) if dtype is not None else default_dtype()
        made = new(shape, kind, place(device), values(shape, kind))
        return made if out is None and not requires_grad else _finish(out or made, requires_grad)

    def like(
        base: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **more: Any
    ) -> Tensor:
        _checked(more, name)
        laid = empty_like(base, read_dtype(dtype) if dtype is not None else None, place(device) if device else None)
        filled = values(list(base.shape), laid.dtype)
        strides = None if str(more.get("memory_format")) == "torch.contiguous_format" else laid.strides
        made = new(base.shape, laid.dtype, laid.device, filled, strides)
        return _finish(made, requires_grad)

    def new_one(base: Tensor, *size: Any, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
        return create(*size, dtype=dtype or base.dtype, device=device or base.device, **more)

    for made, title in ((create, name), (like, f"{name}_like"), (new_one, f"new_{name}")):
        made.__name__ = title
    FUNCTIONS[name], FUNCTIONS[f"{name}_like"] = create, like
    if name in ("empty", "zeros", "ones"):
        setattr(Tensor, f"new_{name}", new_one)


_create("empty", None)
_create("zeros", lambda shape, kind: np.zeros(shape, kind.array))
_create("ones", lambda shape, kind: np.ones(shape, kind.array))
_create("rand", lambda shape, _: random_numbers().random(shape))
_create("randn", lambda shape, _: random_numbers().standard_normal(shape))


@operation(method=False)
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Return a tensor of one value."""
    requires_grad = more.pop("requires_grad", False)
    _checked(more, "full")
    number = fill_value.item() if isinstance(fill_value, Tensor) and fill_value.known() is not None else fill_value
    kind = read_dtype(dtype) if dtype is not None else of_scalar(number)
    shape = sizes((size,))
    values = None if isinstance(number, Tensor) or math.prod(shape) > KNOWN else np.full(shape, number)
    return _finish(new(shape, kind, place(device), values), requires_grad)


@operation(method=False)
def full_like(base: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Return a tensor of one value, laid out as another."""
    made: Tensor = FUNCTIONS["zeros_like"](base, dtype=dtype, device=device, **more)
    return made.fill_(fill_value)  # type: ignore[no-any-return] # from the registry


def _new_full(
    base: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, **more: Any
) -> Tensor:
    return full(size, fill_value, dtype=dtype or base.dtype, device=device or base.device, **more)


def _new_tensor(base: Tensor, data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    return tensor(data, dtype=dtype or base.dtype, device=device or base.device)


@operation(method=False)
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Return a tensor with strides of one's own."""
    requires_grad = more.pop("requires_grad", False)
    _checked(more, "empty_strided")
    kind = read_dtype(dtype) if dtype is not None else default_dtype()
    return _finish(new(sizes((size,)), kind, place(device), None, sizes((stride,))), requires_grad)


def _new_empty_strided(base: Tensor, size: Any, stride: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    return empty_strided(size, stride, dtype=dtype or base.dtype, device=device or base.device)


@operation(method=False)
def arange(*bounds: Any, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Return the numbers of a range."""
    _checked(more, "arange")
    numbers = [item.item() if isinstance(item, Tensor) else item for item in bounds]
    start, end, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    whole = all(isinstance(item, int | np.integer) for item in (start, end, step))
    kind = read_dtype(dtype) if dtype is not None else int64 if whole else default_dtype()
    count = max(0, math.ceil((end - start) / step))
    values = start + step * np.arange(count) if count <= KNOWN else None
    return new([count], kind, place(device), values)


@operation(method=False)
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Return numbers at equal distances."""
    _checked(more, "linspace")
    kind = read_dtype(dtype) if dtype is not None else default_dtype()
    return new([steps], kind, place(device), np.linspace(start, end, steps) if steps <= KNOWN else None)


@operation(method=False)
def randint(*bounds: Any, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Return random whole numbers: ``randint(low=0, high, size)``."""
    size = more.pop("size", None)
    low, high = more.pop("low", 0), more.pop("high", None)
    _checked(more, "randint")
    given = list(bounds)
    if given and not isinstance(given[-1], int):
        size = given.pop()
    if len(given) == 2:
        low, high = given
    elif given:
        high = given[0]
    kind = read_dtype(dtype) if dtype is not None else int64
    shape = sizes((size,))
    values = random_numbers().integers(low, max(int(high), int(low) + 1), shape) if math.prod(shape) <= KNOWN else None
    return new(shape, kind, place(device), values)


@operation(method=False)
def randint_like(base: Tensor, *bounds: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return random whole numbers in another tensor's shape."""
    return randint(*bounds, tuple(base.shape), dtype=dtype or base.dtype, device=device or base.device)


@operation(method=False)
def randperm(n: int, *, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Return a random order."""
    _checked(more, "randperm")
    kind = read_dtype(dtype) if dtype is not None else int64
    return new([n], kind, place(device), random_numbers().permutation(n) if n <= KNOWN else None)


@operation(method=False)
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **more: Any) -> Tensor:
    """Return random numbers of a normal distribution."""
    if size is None:
        return empty_like(mean if isinstance(mean, Tensor) else std)
    return FUNCTIONS["randn"](size, **more) * std + mean  # type: ignore[no-any-return] # from the registry


@operation(method=False)
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, **more: Any) -> Tensor:
    """Return an identity matrix."""
    _checked(more, "eye")
    kind = read_dtype(dtype) if dtype is not None else default_dtype()
    columns = n if m is None else m
    return new([n, columns], kind, place(device), np.eye(n, columns) if n * columns <= KNOWN else None)


@operation(method=False)
def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **more: Any) -> Tensor:
    """Return a tensor of Python's or NumPy's values."""
    _checked(more, "tensor")
    if isinstance(data, Tensor):
        values: Any = data.known()
        made = new(data.shape, read_dtype(dtype or data.dtype), place(device or data.device), values)
        return _finish(made, requires_grad)
    values = data if isinstance(data, np.ndarray | np.generic) else _plain(data)
    array = np.asarray(values)
    if dtype is not None:
        kind = read_dtype(dtype)
    elif isinstance(data, np.ndarray | np.generic):
        kind = from_array(array)
    elif array.dtype == bool:
        kind = bool_
    else:
        kind = int64 if array.dtype.kind in "iu" and array.size else default_dtype()
    return _finish(new(array.shape, kind, place(device), array), requires_grad)


def _plain(data: Any) -> Any:
    """Return nested sequences as lists of numbers."""
    if isinstance(data, Tensor):
        return data.tolist()
    if isinstance(data, list | tuple | range):
        return [_plain(item) for item in data]
    return data


@operation(method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor, the same one where it fits."""
    if isinstance(data, Tensor):
        return data.to(device or data.device, dtype or data.dtype)  # type: ignore[no-any-return] # from the registry
    return tensor(data, dtype=dtype, device=device)


@operation(method=False)
def from_numpy(array: Array) -> Tensor:
    """Return an array as a tensor on the host."""
    return new(array.shape, from_array(array), CPU, array)


@operation(method=False)
def scalar_tensor(value: Any, **more: Any) -> Tensor:
    """Return a number as a tensor without dimensions."""
    return tensor(value, **more)


add_method("new_full", _new_full)
add_method("new_tensor", _new_tensor)
add_method("new_empty_strided", _new_empty_strided)
FUNCTIONS["is_tensor"] = lambda value: isinstance(value, Tensor)
