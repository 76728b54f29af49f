"""Where an instruction comes from: places in source files, the innermost inlined one first."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A place in a source file; ``line`` and ``column`` count from 1, 0 where the compiler knew none."""

    file: str
    line: int
    column: int = 0


Stack = tuple[Place, ...]


def in_file(stack: Stack, file: str) -> Place | None:
    """Return the innermost place in a file, such as the kernel's own line of an instruction inlined from a library."""
    return next((place for place in stack if place.file == file), None)
