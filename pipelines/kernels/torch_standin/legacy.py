"""Torch's old tensor types, ``torch.LongTensor``: constructors, and what tensors of one type and device are."""

from __future__ import annotations

from typing import Any

from pipelines.kernels.torch_standin.core import FUNCTIONS, Tensor
from pipelines.kernels.torch_standin.dtypes import DTYPES, DType

_NAMES = {
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Float": "float32",
    "Double": "float64",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Bool": "bool",
}


class _TensorType(type):
    """The type of these types: they make plain tensors, which are their instances by element type and device."""

    kind: DType
    device: str

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.kind and value.device.type == cls.device

    def __call__(cls, *args: Any) -> Tensor:
        """Return a tensor of a shape, or of values where they are given in a list or tuple."""
        of_values = bool(args) and isinstance(args[0], list | tuple)
        made: Tensor = FUNCTIONS["tensor" if of_values else "empty"](*args, dtype=cls.kind, device=cls.device)
        return made


def types(device: str) -> dict[str, type]:
    """Return the types of a device, ``cpu`` or ``cuda``, by name."""
    return {
        f"{name}Tensor": _TensorType(f"{name}Tensor", (), {"kind": DTYPES[kind], "device": device})
        for name, kind in _NAMES.items()
    }
