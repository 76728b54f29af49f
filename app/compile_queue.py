"""The queue of compilations: Huey on SQLite. It carries only trace ids; the database says what has to be done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huey import SqliteHuey
from huey.consumer import Consumer
from huey.registry import Message
from huey.serializer import Serializer

# Huey's default backs off to 10 s between looks into the queue; a submit should be picked up at once.
POLL_SECONDS = 0.02

TASK = "compile_trace"


class JsonMessages(Serializer):  # type: ignore[misc]  # huey has no types
    """Messages as JSON, so that whoever can write to the queue cannot run code in the worker."""

    def _serialize(self, data: Message) -> bytes:
        return json.dumps([data.id, data.name, list(data.args)]).encode()

    def _deserialize(self, data: bytes) -> Message:
        task_id, name, args = json.loads(bytes(data))
        return Message(task_id, name, None, 0, 0, None, tuple(args), {}, None, None, None, None)


class CompileQueue:
    """Sends trace ids to whichever worker takes them. A lost or repeated message is harmless."""

    def __init__(self, path: Path) -> None:
        self._huey = SqliteHuey(
            "compiles", filename=str(path), serializer=JsonMessages(), results=False, fsync=False, strict_fifo=True
        )
        self._handler: Callable[[str], None] | None = None
        self._task = self._huey.task(name=TASK)(self._handle)

    def send(self, trace_id: str) -> None:
        """Ask for a trace to be compiled."""
        self._task(trace_id)

    def consumer(self, handler: Callable[[str], None], *, threads: int) -> Consumer:
        """Return a consumer, not yet started, that calls ``handler`` with each trace id from ``threads`` threads."""
        self._handler = handler
        return Consumer(
            self._huey,
            workers=threads,
            periodic=False,
            initial_delay=POLL_SECONDS,
            backoff=1.0,
            max_delay=POLL_SECONDS,
            scheduler_interval=60,
        )

    def pending(self) -> int:
        """Return how many messages wait."""
        return int(self._huey.pending_count())

    def close(self) -> None:
        """Close this thread's connection."""
        self._huey.storage.close()

    def _handle(self, trace_id: Any) -> None:
        if self._handler is not None and isinstance(trace_id, str):
            self._handler(trace_id)
