"""Devices: there is one GPU, the target, and the host."""

from __future__ import annotations

from typing import Any

_TYPES = ("cpu", "cuda", "meta")


class Device:
    """A device by type and index, ``cuda:0``."""

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:  # noqa: A002 - torch's own name
        if isinstance(type, Device):
            type, index = type.type, type.index  # noqa: A001 - torch's own name
        elif isinstance(type, int):
            type, index = "cuda", type  # noqa: A001 - torch's own name
        elif isinstance(type, str) and ":" in type:
            type, _, number = type.partition(":")  # noqa: A001 - torch's own name
            index = int(number)
        if type not in _TYPES:
            raise RuntimeError(f"Loupe's stand-in for torch has the devices {', '.join(_TYPES)}, no {type!r}")
        self.type: str = type
        self.index = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        inner = f"type='{self.type}'" if self.index is None else f"type='{self.type}', index={self.index}"
        return f"device({inner})"

    def __enter__(self) -> Device:
        _entered.append(_default[0])
        _default[0] = self
        return self

    def __exit__(self, *_: object) -> None:
        _default[0] = _entered.pop()


Device.__name__, Device.__qualname__, Device.__module__ = "device", "device", "torch"

CPU = Device("cpu")
CUDA = Device("cuda", 0)
_default = [CPU]
_entered: list[Device] = []


def default_device() -> Device:
    """Return where tensors are made that nobody gave a device."""
    return _default[0]


def set_default_device(device: Any) -> None:
    """Change where tensors are made that nobody gave a device."""
    _default[0] = CPU if device is None else Device(device)


def place(device: Any) -> Device:
    """Return where a tensor is, which has an index on a GPU."""
    found = default_device() if device is None else Device(device)
    return Device("cuda", found.index or 0) if found.type == "cuda" else found
