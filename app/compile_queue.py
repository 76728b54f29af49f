"""The queue of compilations: Huey on SQLite. It carries only trace ids; the database says what has to be done."""

from __future__ import annotations

import fcntl
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from huey import SqliteHuey
from huey.consumer import Consumer
from huey.registry import Message
from huey.serializer import Serializer

log = logging.getLogger(__name__)

# Huey's default backs off to 10 s between looks into the queue; a submit should be picked up at once.
POLL_SECONDS = 0.01

TASK = "compile_trace"


class JsonMessages(Serializer):  # type: ignore[misc]  # huey has no types
    """Messages as JSON, so that whoever can write to the queue cannot run code in the worker."""

    def _serialize(self, data: Message) -> bytes:
        return json.dumps([data.id, data.name, list(data.args)]).encode()

    def _deserialize(self, data: bytes) -> Message:
        task_id, name, args = json.loads(bytes(data))
        return Message(task_id, name, None, 0, 0, None, tuple(args), {}, None, None, None, None)


class CompileQueue:
    """Sends trace ids to whichever worker takes them; the file is opened on first use.

    A lost or repeated message is harmless: a worker's sweep sends again what waits too long. So a file that is no
    database is moved away and a new one takes its place.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._opened: tuple[int, SqliteHuey, Callable[[str], None]] | None = None
        self._handler: Callable[[str], None] | None = None

    def send(self, trace_id: str) -> None:
        """Ask for a trace to be compiled; where the message cannot be sent, the next sweep sends it."""
        try:
            self._open()[2](trace_id)
        except sqlite3.Error as error:
            log.error("the queue %s takes no message (%s); %s waits for the next sweep", self._path, error, trace_id)
            self.close()

    def consumer(self, handler: Callable[[str], None], *, threads: int) -> Consumer:
        """Return a consumer, not yet started, that calls ``handler`` with each trace id from ``threads`` threads."""
        self._handler = handler
        return Consumer(
            self._open()[1],
            workers=threads,
            periodic=False,
            initial_delay=POLL_SECONDS,
            backoff=1.0,
            max_delay=POLL_SECONDS,
            scheduler_interval=60,
        )

    def is_sound(self) -> bool:
        """Say whether the file that was opened is still there and a database."""
        return self._opened is None or (self._opened[0] == _inode(self._path) and not _fault(self._path))

    def pending(self) -> int:
        """Return how many messages wait."""
        return int(self._open()[1].pending_count())

    def close(self) -> None:
        """Close this thread's connection; the next message opens the file again."""
        with self._lock:
            if self._opened is not None:
                self._opened[1].storage.close()
                self._opened = None

    def _open(self) -> tuple[int, SqliteHuey, Callable[[str], None]]:
        """Return the queue over the file that is there now, which another process may have renewed."""
        with self._lock:
            if self._opened is None or self._opened[0] != _inode(self._path):
                _repair(self._path)
                huey = SqliteHuey(
                    "compiles",
                    filename=str(self._path),
                    serializer=JsonMessages(),
                    results=False,
                    fsync=False,
                    strict_fifo=True,
                )
                self._opened = (_inode(self._path), huey, huey.task(name=TASK)(self._handle))
            return self._opened

    def _handle(self, trace_id: Any) -> None:
        if self._handler is not None and isinstance(trace_id, str):
            self._handler(trace_id)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _fault(path: Path) -> str | None:
    """Return what is wrong with a database file that is there, or None."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path)) as connection:
            found: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError:  # it is locked, or cannot be opened: no damage
        return None
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if found == "ok" else found


def _repair(path: Path) -> None:
    """Move a damaged queue away, one process at a time."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fault = _fault(path)
        if fault is None:
            return
        away = f".damaged-{time.time():.0f}"
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            part = path.with_name(name)
            if part.exists():
                part.rename(part.with_name(name + away))
        log.error("%s is damaged (%s); it is now %s, and a new one takes its place", path, fault, path.name + away)
