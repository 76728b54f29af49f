"""The blob store: one ``.loupe`` file for each content, and the ones in use kept open."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from pipelines.addedfile import AddedFile
from pipelines.trace import TraceError
from pipelines.tracefile import SUFFIX, FrameFile, TraceFile

OPEN_BYTES = 256 << 20
# A parsed manifest takes five times its JSON, which is kept beside it.
PARSED = 6

_CONTENT = re.compile(r"[0-9a-f]{64}")
_NEW = ".new-"
_OWN = re.compile(rf"[0-9a-f]{{64}}{re.escape(SUFFIX)}|{re.escape(_NEW)}.*")


class DamagedError(TraceError):
    """A stored trace file is missing or damaged; the message says which, and how it comes back."""

    def __init__(self, content: str, what: str) -> None:
        super().__init__(
            f"The stored file of this trace {what} ({content}{SUFFIX}). Compile the same input again, or upload the "
            "file: the link then works again."
        )


File = TypeVar("File", bound=FrameFile)


class _Held(NamedTuple, Generic[File]):
    """An open file: which one it is, what it takes in memory, and itself."""

    stamp: tuple[int, int, int]
    size: int
    trace: File


class FileStore(Generic[File]):
    """Files of one kind by content, below one folder. Files are written whole or not at all.

    A file never changes, but a sound one takes the place of one that is damaged.
    """

    def __init__(self, root: Path, kind: type[File], *, open_bytes: int = OPEN_BYTES) -> None:
        self._root = root
        self._kind = kind
        self._limit = open_bytes
        self._open: OrderedDict[str, _Held[File]] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    def path(self, content: str) -> Path:
        """Return where a content lies, whether or not it is there; raise ValueError for what is no content."""
        if not _CONTENT.fullmatch(content):
            raise ValueError(f"{content!r} is not a content hash")
        return self._root / content[:2] / f"{content}{SUFFIX}"

    def opens(self, content: str) -> bool:
        """Say whether a content is stored and its file opens."""
        try:
            self.open(content)
        except DamagedError:
            return False
        return True

    def put(self, content: str, data: bytes, *, durable: bool = True) -> None:
        """Store a trace file; ``durable`` waits until it would survive a power loss."""
        path = self.path(content)
        if self._keeps(path, content, data):
            return
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_NEW)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            self._place(Path(name), path)
        except BaseException:  # whatever ends the write, no half file stays; it is raised again
            Path(name).unlink(missing_ok=True)
            raise
        self.forget(content)

    def adopt(self, content: str, file: Path) -> None:
        """Move a received file, known to be sound, into the store."""
        path = self.path(content)
        if self._keeps(path, content, file.read_bytes()):
            return
        path.parent.mkdir(mode=0o700, exist_ok=True)
        file.chmod(0o600)
        os.utime(file)
        self._place(file, path)
        self.forget(content)

    def sweep(self, named: Callable[[], Collection[str]], *, older_than: float) -> int:
        """Delete what nothing names and nobody stored since a moment; return how many files that were.

        ``named`` returns the contents that are named; what will be named next was stored, or touched, a moment ago.
        """
        old = [path for path in self._root.glob("??/*") if _OWN.fullmatch(path.name) and _changed(path) < older_than]
        kept = named() if old else ()
        gone = 0
        for path in old:
            if path.stem in kept:
                continue
            with self._changing():
                if _changed(path) < older_than:
                    path.unlink(missing_ok=True)
                    gone += 1
            self.forget(path.stem)
        return gone

    def forget(self, content: str) -> None:
        """Let the next ``open`` read the file again."""
        with self._lock:
            held = self._open.pop(content, None)
            self._held -= held.size if held else 0

    def open(self, content: str) -> File:
        """Open a file, from memory if it was used lately and its file is the one that was read.

        Raises:
            DamagedError: the content is not stored, or its file is not of this kind or not this one.
        """
        path = self.path(content)
        try:
            status = path.stat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            with self._lock:
                held = self._open.get(content)
                if held and held.stamp == stamp:
                    self._open.move_to_end(content)
                    return held.trace
            trace = self._kind.open(path)
            trace.digests()  # the head is parsed here, so that no reader meets a damaged one
        except FileNotFoundError:
            raise DamagedError(content, "is missing") from None
        except OSError as error:
            raise DamagedError(content, f"cannot be read: {error.strerror}") from None
        except TraceError as error:
            raise DamagedError(content, f"is damaged: {error}") from None
        if trace.content != content:
            raise DamagedError(content, "is damaged: it holds another trace")
        self._hold(content, _Held(stamp, status.st_size + PARSED * trace.head_size, trace))
        return trace

    def _hold(self, content: str, held: _Held[File]) -> None:
        with self._lock:
            before = self._open.pop(content, None)
            self._held += held.size - (before.size if before else 0)
            self._open[content] = held
            while self._held > self._limit and len(self._open) > 1:
                _, gone = self._open.popitem(last=False)
                self._held -= gone.size

    def _keeps(self, path: Path, content: str, data: bytes) -> bool:
        """Say whether a sound file is there already, and keep it from the next sweep."""
        try:
            stored = path.read_bytes()
            if stored != data:
                file = self._kind(stored)
                file.verify()
                if file.content != content:
                    return False
            with self._changing():
                os.utime(path)
        except (OSError, TraceError):
            return False
        return True

    def _place(self, file: Path, path: Path) -> None:
        with self._changing():
            file.replace(path)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the store's lock, so that no sweep of another process deletes what is stored this moment."""
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class BlobStore(FileStore[TraceFile]):
    """Trace files by content."""

    def __init__(self, root: Path, *, open_bytes: int = OPEN_BYTES) -> None:
        super().__init__(root, TraceFile, open_bytes=open_bytes)


class AddedStore(FileStore[AddedFile]):
    """Files of LLVM's passes by the hash of their heads."""

    def __init__(self, root: Path, *, open_bytes: int = OPEN_BYTES) -> None:
        super().__init__(root, AddedFile, open_bytes=open_bytes)


def _changed(path: Path) -> float:
    """Return when a file was stored or last stored again, in UNIX seconds."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")
