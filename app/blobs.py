"""The blob store: one ``.loupe`` file for each content, and the ones in use kept open."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path

from pipelines.trace import TraceError
from pipelines.tracefile import SUFFIX, TraceFile

OPEN_BYTES = 256 << 20

_CONTENT = re.compile(r"[0-9a-f]{64}")


class BlobStore:
    """Trace files by content, below one folder. Files are written whole or not at all, and never change."""

    def __init__(self, root: Path, *, open_bytes: int = OPEN_BYTES) -> None:
        self._root = root
        self._limit = open_bytes
        self._open: OrderedDict[str, tuple[int, TraceFile]] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    def path(self, content: str) -> Path:
        """Return where a content lies, whether or not it is there; raise ValueError for what is no content."""
        if not _CONTENT.fullmatch(content):
            raise ValueError(f"{content!r} is not a content hash")
        return self._root / content[:2] / f"{content}{SUFFIX}"

    def has(self, content: str) -> bool:
        """Say whether a content is stored."""
        return self.path(content).is_file()

    def put(self, content: str, data: bytes, *, durable: bool = True) -> None:
        """Store a trace file; ``durable`` waits until it would survive a power loss."""
        path = self.path(content)
        if path.is_file():
            return
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            Path(name).rename(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def adopt(self, content: str, file: Path) -> None:
        """Move a received file into the store."""
        path = self.path(content)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        file.rename(path)

    def remove(self, content: str) -> None:
        """Delete a content, if it is there."""
        with self._lock:
            held = self._open.pop(content, None)
            self._held -= held[0] if held else 0
        self.path(content).unlink(missing_ok=True)

    def open(self, content: str) -> TraceFile:
        """Open a trace, from memory if it was used lately.

        Raises:
            TraceError: the content is not stored, or damaged.
        """
        with self._lock:
            if content in self._open:
                self._open.move_to_end(content)
                return self._open[content][1]
        path = self.path(content)
        try:
            size = path.stat().st_size
            trace = TraceFile.open(path)
        except FileNotFoundError:
            raise TraceError(f"the trace file {content} is missing from the store") from None
        with self._lock:
            if content not in self._open:
                self._open[content] = (size, trace)
                self._held += size
            while self._held > self._limit and len(self._open) > 1:
                _, (gone, _) = self._open.popitem(last=False)
                self._held -= gone
        return trace
