"""A run's own directory: written before, read afterwards as hostile data, then removed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Slot:
    """One run's directory. Reading it never follows a link, never blocks, and is bounded by the caller."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    def open(self, name: str) -> int | None:
        """Open the regular file ``name`` (a relative path) for reading; None if there is no such file.

        The caller closes the descriptor. It stays valid while the child writes, so a growing file can be
        followed.
        """
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts:
            raise ValueError(f"not a path inside the slot: {name!r}")
        try:
            with _parent(self.descriptor, parts[:-1]) as parent:
                descriptor = os.open(parts[-1], _FILE, dir_fd=parent)
        except OSError:
            return None
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        return None

    def read(self, name: str, limit: int, *, cut: bool = False) -> bytes | None:
        """Read the regular file ``name``, of at most ``limit`` bytes.

        A file that is missing, is not a regular one, or is larger gives None; with ``cut``, a larger file
        gives its first ``limit`` bytes.
        """
        descriptor = self.open(name)
        if descriptor is None:
            return None
        with os.fdopen(descriptor, "rb") as file:
            if not cut and os.fstat(file.fileno()).st_size > limit:
                return None
            content = file.read(limit if cut else limit + 1)
        return content if len(content) <= limit else None

    def size(self, name: str) -> int:
        """Return the bytes of the regular file ``name``, 0 if there is none."""
        descriptor = self.open(name)
        if descriptor is None:
            return 0
        try:
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write ``files`` into the slot; used before the child exists."""
        for name, content in files.items():
            relative = PurePosixPath(name)
            if relative.is_absolute() or ".." in relative.parts:
                raise ValueError(f"not a path inside the slot: {name!r}")
            target = self.path / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


@contextmanager
def _parent(descriptor: int, parts: tuple[str, ...]) -> Iterator[int]:
    """Walk down ``parts`` from ``descriptor`` without following a link."""
    current = os.dup(descriptor)
    try:
        for part in parts:
            below = os.open(part, _DIRECTORY, dir_fd=current)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)
