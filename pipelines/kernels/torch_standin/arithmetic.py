"""Elementwise operations, as a table: each with its NumPy counterpart for known values and its rule for the type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pipelines.kernels.torch_standin.core import FUNCTIONS, Array, Tensor, elementwise, promoted_type
from pipelines.kernels.torch_standin.dtypes import BOOL, FLOAT, DType, bool_, default_dtype
from pipelines.kernels.torch_standin.registry import add_method, operation


def _sigmoid(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


def _erf(x: Array) -> Any:
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _gelu(x: Array) -> Any:
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def _negative(x: Array) -> Any:
    if x.dtype == bool:
        raise RuntimeError("Negation, the `-` operator, on a bool tensor is not supported.")
    return -x


# Functions whose result is a float also of integers.
_TO_FLOAT: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
}
_SAME: dict[str, Callable[..., Any]] = {
    "neg": _negative,
    "negative": _negative,
    "abs": np.abs,
    "absolute": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "trunc": np.trunc,
    "sign": np.sign,
    "square": np.square,
    "relu": lambda x: np.maximum(x, 0),
    "bitwise_not": np.invert,
}
_TO_BOOL: dict[str, Callable[..., Any]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "logical_not": np.logical_not,
}
_BINARY: dict[str, Callable[..., Any]] = {
    "mul": np.multiply,
    "multiply": np.multiply,
    "floor_divide": np.floor_divide,
    "remainder": np.mod,
    "fmod": np.fmod,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
}
_COMPARE: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


def floating(inputs: list[Any]) -> DType:
    """Return the promoted type, the default float where that is an integer."""
    kind = promoted_type(inputs)
    return kind if kind.category >= FLOAT else default_dtype()


def _enter(name: str, make: Callable[..., Tensor]) -> None:
    """Enter an operation and its in-place form, which keeps the tensor's type and layout."""

    def in_place(base: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return base.write(make(base, *args, **kwargs).known())

    make.__name__ = name
    operation(name)(make)
    operation(f"{name}_")(in_place)


def _unary(compute: Callable[..., Any], rule: str) -> Callable[..., Tensor]:
    def call(x: Tensor, **_: Any) -> Tensor:
        kind = {"float": floating([x]), "bool": bool_, "same": None}[rule]
        return elementwise(compute, [x], kind, kind if rule == "float" else None)

    return call


def _binary(compute: Callable[..., Any], kind: DType | None = None) -> Callable[..., Tensor]:
    def call(a: Any, b: Any) -> Tensor:
        return elementwise(compute, [a, b], kind)

    return call


def _add(a: Any, b: Any, *, alpha: Any = 1) -> Tensor:
    return elementwise(lambda x, y: np.add(x, alpha * y) if x.dtype != bool else x | y, [a, b])


def _sub(a: Any, b: Any, *, alpha: Any = 1) -> Tensor:
    return elementwise(lambda x, y: np.subtract(x, alpha * y), [a, b])


def _div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        kind = floating([a, b])
        return elementwise(np.true_divide, [a, b], kind, kind)
    if rounding_mode == "floor":
        return elementwise(np.floor_divide, [a, b])
    return elementwise(lambda x, y: np.trunc(np.true_divide(x, y)), [a, b])


def _clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002 - torch's own names
    given = [item for item in (min, max) if item is not None]

    def compute(values: Array, *limits: Array) -> Any:
        waiting = list(limits)
        if min is not None:
            values = np.maximum(values, waiting.pop(0))
        return np.minimum(values, waiting.pop(0)) if max is not None else values

    return elementwise(compute, [x, *given])


def _lerp(a: Tensor, b: Any, weight: Any) -> Tensor:
    return elementwise(lambda x, y, w: x + w * (y - x), [a, b, weight])


def _addcmul(a: Tensor, b: Any, c: Any, *, value: Any = 1) -> Tensor:
    return elementwise(lambda x, y, z: x + value * y * z, [a, b, c])


def _addcdiv(a: Tensor, b: Any, c: Any, *, value: Any = 1) -> Tensor:
    return elementwise(lambda x, y, z: x + value * y / z, [a, b, c])


def _masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    filled: Tensor = where(mask, value, x)
    made: Tensor = filled.to(x.dtype)
    return made


for _rule, _table in (("float", _TO_FLOAT), ("same", _SAME), ("bool", _TO_BOOL)):
    for _name, _compute in _table.items():
        _enter(_name, _unary(_compute, _rule))
for _name, _compute in _BINARY.items():
    _enter(_name, _binary(_compute))
for _name, _compute in _COMPARE.items():
    _enter(_name, _binary(_compute, bool_))
_OWN: tuple[tuple[str, Callable[..., Tensor]], ...] = (
    ("add", _add),
    ("sub", _sub),
    ("subtract", _sub),
    ("div", _div),
    ("divide", _div),
    ("true_divide", _div),
    ("clamp", _clamp),
    ("clip", _clamp),
    ("lerp", _lerp),
    ("addcmul", _addcmul),
    ("addcdiv", _addcdiv),
    ("masked_fill", _masked_fill),
)
for _name, _compute in _OWN:
    _enter(_name, _compute)


@operation()
def where(condition: Tensor, a: Any = None, b: Any = None) -> Any:
    """Return elements of ``a`` where the condition holds, of ``b`` elsewhere."""
    if a is None or b is None:
        return condition.nonzero(as_tuple=True)
    if condition.dtype.category != BOOL:
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition}")
    kind = promoted_type([a, b])
    return elementwise(lambda c, x, y: np.where(c.astype(bool), x, y), [condition, a, b], kind, kind)


add_method("where", lambda base, condition, other: where(condition, base, other))


def _clamp_min(x: Tensor, limit: Any) -> Tensor:
    return _clamp(x, limit)


def _clamp_max(x: Tensor, limit: Any) -> Tensor:
    return _clamp(x, None, limit)


_enter("clamp_min", _clamp_min)
_enter("clamp_max", _clamp_max)

_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}


def _operator(name: str, *, swapped: bool = False, in_place: bool = False) -> Callable[..., Any]:
    def call(base: Tensor, other: Any) -> Any:
        if not isinstance(other, Tensor | int | float | complex | np.generic):
            return NotImplemented
        if in_place:
            return FUNCTIONS[f"{name}_"](base, other)
        return FUNCTIONS[name](other, base) if swapped else FUNCTIONS[name](base, other)

    return call


for _symbol, _name in _OPERATORS.items():
    setattr(Tensor, f"__{_symbol}__", _operator(_name))
    setattr(Tensor, f"__r{_symbol}__", _operator(_name, swapped=True))
    setattr(Tensor, f"__i{_symbol}__", _operator(_name, in_place=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_name}__", _operator(_name))
add_method("__neg__", FUNCTIONS["neg"])
add_method("__pos__", lambda base: base)
add_method("__abs__", FUNCTIONS["abs"])
add_method("__invert__", FUNCTIONS["bitwise_not"])
add_method("__hash__", object.__hash__)
