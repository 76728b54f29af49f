"""Stands for ``torch._inductor.runtime.hints``: what a kernel's decorator names."""

from __future__ import annotations

import enum
from typing import Any


class ReductionHint(enum.Enum):
    """How a reduction lies in memory."""

    INNER = 0
    OUTER = 1
    OUTER_TINY = 2
    DEFAULT = 3


class TileHint(enum.Enum):
    """Whether a tile should be square."""

    SQUARE = 0
    DEFAULT = 1


class AutotuneHint(enum.Enum):
    """What the autotuner should try too."""

    ELEMENTS_PER_WARP_32 = 0
    ONE_ELEMENT_PER_THREAD = 1


class HeuristicType(enum.Enum):
    """Which decorator a kernel has."""

    PERSISTENT_REDUCTION = 0
    POINTWISE = 1
    REDUCTION = 2
    SPLIT_SCAN = 3
    TEMPLATE = 4
    USER_AUTOTUNE = 5
    FIXED = 6


class DeviceProperties:
    """The device that a kernel was written on; a trace's target is chosen by the user."""

    def __init__(self, **properties: Any) -> None:
        self.__dict__.update(properties)


class AttrsDescriptor:
    """Which arguments are divisible, by position, as Triton 3.0 to 3.2 wrote it."""

    def __init__(self, divisible_by_16: Any = (), equal_to_1: Any = (), **_: Any) -> None:
        self.divisible_by_16 = tuple(divisible_by_16 or ())
        self.equal_to_1 = tuple(equal_to_1 or ())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AttrsDescriptor:
        """Read the form that names each property."""
        found = data.get("arg_properties", {})
        return cls(found.get("tt.divisibility", ()), found.get("tt.equal_to", ()))


instance_descriptor = AttrsDescriptor
