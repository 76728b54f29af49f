"""Types of elements, and torch's rules for which type an operation gives.

The rules are those of torch's documentation, "Tensor Attributes", and of ``c10::promoteTypes``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

BOOL, INTEGER, FLOAT, COMPLEX = range(4)


@dataclass(frozen=True, eq=False, repr=False)
class DType:
    """An element type; ``array`` is the NumPy type that holds its values, a wider one where NumPy has none."""

    name: str
    itemsize: int
    category: int
    array: Any
    is_signed: bool = True

    @property
    def is_floating_point(self) -> bool:
        """Whether it is a real floating-point type."""
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex type."""
        return self.category == COMPLEX

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


DType.__name__, DType.__qualname__, DType.__module__ = "dtype", "dtype", "torch"  # Triton tells dtypes by these

DTYPES = {
    item.name: item
    for item in (
        DType("bool", 1, BOOL, np.bool_, is_signed=False),
        DType("uint8", 1, INTEGER, np.uint8, is_signed=False),
        DType("uint16", 2, INTEGER, np.uint16, is_signed=False),
        DType("uint32", 4, INTEGER, np.uint32, is_signed=False),
        DType("uint64", 8, INTEGER, np.uint64, is_signed=False),
        DType("int8", 1, INTEGER, np.int8),
        DType("int16", 2, INTEGER, np.int16),
        DType("int32", 4, INTEGER, np.int32),
        DType("int64", 8, INTEGER, np.int64),
        DType("float8_e4m3fn", 1, FLOAT, np.float32),
        DType("float8_e5m2", 1, FLOAT, np.float32),
        DType("float8_e4m3fnuz", 1, FLOAT, np.float32),
        DType("float8_e5m2fnuz", 1, FLOAT, np.float32),
        DType("float8_e8m0fnu", 1, FLOAT, np.float32, is_signed=False),
        DType("float16", 2, FLOAT, np.float16),
        DType("bfloat16", 2, FLOAT, np.float32),
        DType("float32", 4, FLOAT, np.float32),
        DType("float64", 8, FLOAT, np.float64),
        DType("complex64", 8, COMPLEX, np.complex64),
        DType("complex128", 16, COMPLEX, np.complex128),
    )
}
bool_, int64, float32 = DTYPES["bool"], DTYPES["int64"], DTYPES["float32"]
ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "cfloat": "complex64",
}
_PYTHON: dict[type, DType] = {bool: bool_, int: int64, float: float32, complex: DTYPES["complex64"]}

_default = float32


def default_dtype() -> DType:
    """Return the type of floats that nobody gave one."""
    return _default


def set_default_dtype(kind: DType) -> None:
    """Change the type of floats that nobody gave one."""
    global _default
    _default = kind


def read_dtype(kind: Any) -> DType:
    """Return a type given as one of torch's or of Python's."""
    if isinstance(kind, DType):
        return kind
    if kind in _PYTHON:
        return DTYPES["float64"] if kind is float else _PYTHON[kind]
    raise TypeError(f"{kind!r} is not a torch.dtype")


def from_array(array: np.ndarray[Any, Any]) -> DType:
    """Return the type of a NumPy array's elements."""
    for kind in DTYPES.values():
        if np.dtype(kind.array) == array.dtype and not kind.name.startswith(("bfloat", "float8")):
            return kind
    raise TypeError(f"can't convert np.ndarray of type {array.dtype}")


def of_scalar(value: Any) -> DType:
    """Return the type of a Python number."""
    kind = next((kind for kind in _PYTHON if type(value) is kind), None)
    if kind is None:
        kind = next((kind for kind in _PYTHON if isinstance(value, kind)), float)
    return _default if kind is float else _PYTHON[kind]


def promote_types(a: DType, b: DType) -> DType:
    """Return the smallest type that both fit into, by torch's table."""
    if a is b:
        return a
    if a.category != b.category:
        return a if a.category > b.category else b
    if a.category == INTEGER and a.is_signed != b.is_signed:
        unsigned, signed = (b, a) if a.is_signed else (a, b)
        if unsigned.itemsize < signed.itemsize:
            return signed
        return DTYPES[f"int{min(64, 16 * unsigned.itemsize)}"]
    if a.itemsize == b.itemsize:
        return float32 if a.itemsize == 2 else a
    return a if a.itemsize > b.itemsize else b


def result_type(dimensioned: Iterable[DType], zero_dim: Iterable[DType], scalars: Iterable[Any]) -> DType:
    """Return an operation's type: numbers and tensors without dimensions only count by their category."""
    found: DType | None = None
    for kinds in (scalars, zero_dim, dimensioned):  # from the weakest to the strongest
        kind: DType | None = None
        for item in kinds:
            one = item if isinstance(item, DType) else of_scalar(item)
            kind = one if kind is None else promote_types(kind, one)
        if kind is not None:
            found = kind if found is None or kind.category >= found.category else _raise(kind, found)
    if found is None:
        raise TypeError("an operation needs a tensor or a number")
    return found


def _raise(strong: DType, weak: DType) -> DType:
    """Return the type of a strong operand of a lower category than a weak one."""
    if weak.category == COMPLEX:
        return DTYPES["complex128"] if strong.name == "float64" else DTYPES["complex64"]
    return weak if strong.category == BOOL or weak.category == FLOAT else strong


class FloatInfo:
    """What ``torch.finfo`` tells."""

    _SPECIAL = {  # noqa: RUF012 - a table: largest, smallest normal, epsilon; from torch's own finfo
        "bfloat16": (3.3895313892515355e38, 1.1754943508222875e-38, 0.0078125),
        "float8_e4m3fn": (448.0, 0.015625, 0.125),
        "float8_e5m2": (57344.0, 6.103515625e-05, 0.25),
        "float8_e4m3fnuz": (240.0, 0.0078125, 0.125),
        "float8_e5m2fnuz": (57344.0, 3.0517578125e-05, 0.25),
    }

    def __init__(self, kind: DType | None = None) -> None:
        kind = kind or _default
        if kind.category not in (FLOAT, COMPLEX):
            raise TypeError(f"torch.finfo() requires a floating point input type, not {kind}")
        self.dtype = kind.name
        self.bits = 8 * kind.itemsize
        if kind.name in self._SPECIAL:
            self.max, self.tiny, self.eps = self._SPECIAL[kind.name]
        else:
            info = np.finfo(kind.array)
            self.max, self.tiny, self.eps = float(info.max), float(info.tiny), float(info.eps)
        self.min, self.smallest_normal, self.resolution = -self.max, self.tiny, self.eps


class IntegerInfo:
    """What ``torch.iinfo`` tells."""

    def __init__(self, kind: DType) -> None:
        if kind.category != INTEGER:
            raise TypeError(f"torch.iinfo() requires an integer input type, not {kind}")
        info = np.iinfo(kind.array)
        self.dtype, self.bits, self.min, self.max = kind.name, int(info.bits), int(info.min), int(info.max)
