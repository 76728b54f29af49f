"""Bounded caches of what can be computed again: one on disk, shared by all processes, and one in memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

Value = TypeVar("Value")

KEEP = 0.8


class DiskCache:
    """Bytes by key in files; past ``limit`` bytes the files least recently read are dropped.

    Each process counts only what it writes itself, so with n processes the folder may hold n times ``limit`` for a
    moment. Deleting the folder's files at any time is harmless.
    """

    def __init__(self, root: Path, *, limit: int) -> None:
        self._root = root
        self._limit = limit
        self._written: int | None = None
        self._lock = threading.Lock()

    def get(self, kind: str, key: str) -> bytes | None:
        """Return the bytes kept under a key, or None."""
        path = self._path(kind, key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        with contextlib.suppress(FileNotFoundError):
            os.utime(path)
        return data

    def put(self, kind: str, key: str, data: bytes) -> None:
        """Keep bytes under a key; a full disk only means that they are not kept."""
        path = self._path(kind, key)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                Path(name).replace(path)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError:
            return
        self._count(len(data))

    def _path(self, kind: str, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self._root / kind / name[:2] / name

    def _count(self, size: int) -> None:
        with self._lock:
            if self._written is None:
                self._written = sum(entry[1] for entry in self._files())
            else:
                self._written += size
            if self._written > self._limit:
                self._written = self._shrink()

    def _files(self) -> list[tuple[float, int, Path]]:
        found = []
        for folder, _, names in os.walk(self._root):
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    status = path.stat()
                    found.append((status.st_mtime, status.st_size, path))
        return found

    def _shrink(self) -> int:
        files = sorted(self._files())
        held = sum(size for _, size, _ in files)
        for _, size, path in files:
            if held <= self._limit * KEEP:
                break
            path.unlink(missing_ok=True)
            held -= size
        return held


class KeyedLocks:
    """A lock for each key that somebody holds or waits for."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[threading.Lock, int]] = {}
        self._changing = threading.Lock()

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Wait for a key's lock and hold it."""
        with self._changing:
            lock, users = self._locks.get(key, (threading.Lock(), 0))
            self._locks[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._changing:
                _, users = self._locks[key]
                if users == 1:
                    del self._locks[key]
                else:
                    self._locks[key] = (lock, users - 1)

    def __len__(self) -> int:
        return len(self._locks)


class MemoryCache(Generic[Value]):
    """Values by key, each with its size in bytes; past ``limit`` bytes the least recently used are dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._entries: OrderedDict[str, tuple[int, Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> Value | None:
        """Return the value kept under a key, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[1]

    def put(self, key: str, value: Value, size: int) -> None:
        """Keep a value unless it alone is larger than the cache."""
        if size > self._limit:
            return
        with self._lock:
            old = self._entries.pop(key, None)
            self._held += size - (old[0] if old else 0)
            self._entries[key] = (size, value)
            while self._held > self._limit:
                _, (gone, _) = self._entries.popitem(last=False)
                self._held -= gone
