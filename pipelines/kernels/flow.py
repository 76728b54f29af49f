"""What an expression in a kernel carries of the kernel's parameters, and what is learnt of each parameter.

A set of parameters is a bit mask: the n-th bit stands for the n-th parameter, so that a union costs one operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression carries.

    Attributes:
        exact: parameters that it is, by another name.
        address: parameters that it may be an address of: itself, and what is added to it.
        element: parameters whose loaded elements it is, with their type.
        mentions: all parameters that it was computed from, but for loaded values.
        index: it counts: made of ``program_id``, ``arange``, ``range``, whole numbers.
        wide: it is fp32: a cast, a sum of products, the result of a function that gives only that.
        number: it is a floating-point number of any kind.
    """

    exact: int = 0
    address: int = 0
    element: int = 0
    mentions: int = 0
    index: bool = False
    wide: bool = False
    number: bool = False

    def __or__(self, other: Value) -> Value:
        """Return what either may be."""
        return Value(
            self.exact | other.exact,
            self.address | other.address,
            self.element | other.element,
            self.mentions | other.mentions,
            self.index or other.index,
            self.wide or other.wide,
            self.number or other.number,
        )

    def part(self) -> Value:
        """Return what an item, a view or a reshaped block of it carries: all but being the parameter itself."""
        return replace(self, exact=0)


NOTHING = Value()
INDEX = Value(index=True)
WIDE = Value(wide=True, number=True)


@dataclass
class Facts:
    """What a kernel's body says of one parameter; every ``str`` says by what, in a few words.

    Attributes:
        pointer: why it is an address.
        integers: why its elements are whole numbers.
        addresses: its elements are themselves used as addresses.
        single: why its elements have to be fp32.
        words: why its elements are of 32 bits, such as a lock's.
        descriptor: parameters in each offset of the descriptor's ``load``, one mask a dimension.
        integer: why the value is a whole number.
        number: why the value is a floating-point number.
        block: it is a side of a block of so many dimensions at most; ``product`` where others are in that side, too.
        unrolls: it bounds a loop that is unrolled.
        dtype: why it is a dtype; ``accumulates`` where it is that of an accumulator.
        called: number of arguments it is called with.
        flag: it is tested by itself.
        optional: why it may be None.
        strings, numbers: literals that it is compared with.
        items: it is a tuple, of which so many items are used at least.
    """

    pointer: str = ""
    integers: str = ""
    addresses: bool = False
    single: str = ""
    words: str = ""
    descriptor: tuple[int, ...] | None = None
    integer: str = ""
    number: str = ""
    block: int = 0
    product: bool = False
    unrolls: bool = False
    dtype: str = ""
    accumulates: bool = False
    called: int | None = None
    flag: bool = False
    optional: str = ""
    strings: dict[str, None] = field(default_factory=dict)
    numbers: dict[int, None] = field(default_factory=dict)
    items: int | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is a floating-point number, and nothing else by what is known so far."""
        return bool(self.number) and not self.integer and not self.pointer


@dataclass
class Usage:
    """What a function does with its parameters, and what it returns of them.

    ``pairs`` are the elements on both sides of each ``dot``; ``dimensions`` the most that a block has.
    """

    names: tuple[str, ...]
    facts: dict[str, Facts]
    returned: Value = NOTHING
    pairs: list[tuple[int, int]] = field(default_factory=list)
    dimensions: int = 1


# What a helper tells of the parameter that a caller's own argument is passed as, and never overrides.
TOLD = ("integer", "number", "dtype", "optional")


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of a mask's bits, from the lowest."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
