"""Measure and remove directory trees that hostile code has built, without following a link."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat
from collections.abc import Iterator

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 512
_ENTRY = 4096


class TreeRefused(Exception):  # noqa: N818 - a finding about the tree, not a failure of the walk
    """The tree has too many entries or levels, or a directory closed to its owner."""


def measure(descriptor: int, entries: int, depth: int = 64) -> int:
    """Bytes stored below an open directory: what files occupy, and at least 4 KiB an entry.

    Raises:
        TreeRefused: more than ``entries`` entries, directories nested deeper than ``depth``, or one that
            cannot be opened, behind which anything could hide.
    """
    total, _ = _measure(descriptor, entries, depth)
    return total


def _measure(descriptor: int, entries: int, depth: int) -> tuple[int, int]:
    total = 0
    below: list[str] = []
    with os.scandir(descriptor) as listing:
        for entry in listing:
            entries -= 1
            if entries < 0:
                raise TreeRefused("too many files")
            with contextlib.suppress(FileNotFoundError):
                info = entry.stat(follow_symlinks=False)
                total += max(info.st_blocks * _BLOCK, _ENTRY)
                if stat.S_ISDIR(info.st_mode):
                    below.append(entry.name)
    if below and not depth:
        raise TreeRefused("directories nested too deep")
    for name in below:
        try:
            inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            raise TreeRefused("a directory closed to its owner") from error
        try:
            size, entries = _measure(inner, entries, depth - 1)
        finally:
            os.close(inner)
        total += size
    return total, entries


def remove(parent: int, name: str) -> None:
    """Remove the tree ``name`` in the open directory ``parent``, when nothing writes to it any more.

    Subdirectories are moved up to the top before they are emptied, so any depth needs two descriptors. What has
    gone meanwhile is no error: two may remove at once.
    """
    with contextlib.suppress(FileNotFoundError):
        top = _open(parent, name)
        try:
            prefix = f"{secrets.token_hex(8)}-{{}}"
            numbers = itertools.count()
            while below := _unlink_files(top):
                for directory in below:
                    with contextlib.suppress(FileNotFoundError):
                        _flatten(top, directory, map(prefix.format, numbers))
        finally:
            os.close(top)
        os.rmdir(name, dir_fd=parent)


def _flatten(top: int, name: str, names: Iterator[str]) -> None:
    """Move the directories in ``name`` to ``top``, under new names, and remove the rest of it."""
    inner = _open(top, name)
    try:
        for deeper in _unlink_files(inner):
            _unlock(inner, deeper)
            os.rename(deeper, next(names), src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def _unlock(parent: int, name: str) -> None:
    os.chmod(name, 0o700, dir_fd=parent)


def _open(parent: int, name: str) -> int:
    """Open a directory, after giving its owner the right to."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        raise NotADirectoryError(name)
    _unlock(parent, name)
    return os.open(name, _DIRECTORY, dir_fd=parent)


def _unlink_files(descriptor: int) -> list[str]:
    """Unlink everything but directories; their names are returned."""
    directories: list[str] = []
    with os.scandir(descriptor) as listing:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
    for name, directory in entries:
        if directory:
            directories.append(name)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=descriptor)
    return directories
