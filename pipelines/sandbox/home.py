"""A sandbox's own directory, which holds its slots and is held by a lock for as long as the sandbox lives."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from pipelines.sandbox import cgroups, tree
from pipelines.sandbox.slot import Slot

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PREFIX = "sandbox-"


class Home:
    """A fresh directory; those of sandboxes that died without removing theirs are removed on the way."""

    def __init__(self, parent: Path) -> None:
        """Make it in ``parent``, which is made too.

        Raises:
            OSError: it cannot be made.
        """
        parent.mkdir(parents=True, exist_ok=True)
        self.token = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._parent = os.open(parent, _DIRECTORY)
        fcntl.flock(self._parent, fcntl.LOCK_EX)
        try:
            _sweep(self._parent)
            self.path = parent.resolve() / f"{_PREFIX}{self.token}"
            self.path.mkdir(0o700)
            self._descriptor = os.open(self.path, _DIRECTORY)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            fcntl.flock(self._parent, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def slot(self) -> Iterator[Slot]:
        """An empty slot, removed with all that is in it when the context is left."""
        name = f"slot-{next(self._numbers)}"
        home = os.dup(self._descriptor)  # valid to the end, whoever closes the sandbox meanwhile
        try:
            os.mkdir(name, 0o700, dir_fd=home)
            descriptor = os.open(name, _DIRECTORY, dir_fd=home)
            try:
                yield Slot(self.path / name, descriptor)
            finally:
                os.close(descriptor)
                tree.remove(home, name)
        finally:
            os.close(home)

    def close(self) -> None:
        """Remove it."""
        tree.remove(self._parent, self.path.name)
        os.close(self._descriptor)
        os.close(self._parent)


def remove_orphan(path: Path) -> None:
    """Remove the directory of a sandbox that has died, and its control groups."""
    parent = os.open(path.parent, _DIRECTORY)
    try:
        tree.remove(parent, path.name)
    finally:
        os.close(parent)
    cgroups.remove(path.name.removeprefix(_PREFIX))


def _sweep(parent: int) -> None:
    for name in os.listdir(parent):
        if not name.startswith(_PREFIX):
            continue
        with contextlib.suppress(OSError):
            descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                tree.remove(parent, name)
            finally:
                os.close(descriptor)
