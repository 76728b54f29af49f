"""Progress events: appended in batches by whoever compiles, read by id by whoever watches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.database import Database
from app.models import Event

log = logging.getLogger(__name__)

BATCH_SECONDS = 0.03
POLL_SECONDS = 0.005


def append(session: Session, trace_id: str, kind: str, **data: Any) -> None:
    """Append one event in the caller's transaction, so that it is seen with what it reports."""
    session.execute(insert(Event).values(trace_id=trace_id, kind=kind, data=data))


class EventBatch:
    """Collects events and writes them every ``BATCH_SECONDS``: a compilation makes a hundred in half a second."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._some = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def add(self, trace_id: str, kind: str, data: dict[str, Any]) -> None:
        """Have an event written soon."""
        with self._lock:
            self._rows.append({"trace_id": trace_id, "kind": kind, "data": data})
        self._some.set()

    def flush(self) -> None:
        """Write what was added before; events that cannot be written are dropped, since they are only progress."""
        with self._writing:
            with self._lock:
                rows, self._rows = self._rows, []
                self._some.clear()
            if not rows:
                return
            try:
                with self._database.write() as session:
                    session.execute(insert(Event), rows)
            except SQLAlchemyError:
                log.exception("dropped %d progress events", len(rows))

    def close(self) -> None:
        """Write the rest and stop."""
        self._closed.set()
        self._some.set()
        self._thread.join()
        self.flush()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._some.wait()
            self._closed.wait(BATCH_SECONDS)
            self.flush()


class Watcher:
    """Wakes the streams of one process when events arrive; looks into the table only while somebody watches."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = threading.Condition()
        self._newest = -1
        self._watching = 0
        self._stopped = False
        self._thread: threading.Thread | None = None

    def watch(self, read: Callable[[int], Sequence[Event]], after: int, idle: float) -> Iterator[Sequence[Event]]:
        """Yield what ``read(after)`` finds, as it arrives; an empty sequence after ``idle`` seconds without any."""
        with self._changed:
            self._watching += 1
            self._start()
        try:
            while not self._stopped:
                with self._changed:
                    seen = self._newest
                events = read(after)
                if events:
                    after = events[-1].id
                    yield events
                    continue
                with self._changed:
                    woken = self._changed.wait_for(partial(self._is_new, seen), idle)
                if not woken:
                    yield ()
        finally:
            with self._changed:
                self._watching -= 1

    def _is_new(self, seen: int) -> bool:
        return self._stopped or self._newest != seen

    @property
    def watching(self) -> int:
        """How many streams are open in this process."""
        return self._watching

    def stop(self) -> None:
        """End all streams, for a graceful stop; only sets flags, so a signal handler may call it."""
        self._stopped = True

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._poll, name="watcher", daemon=True)
            self._thread.start()

    def _poll(self) -> None:
        pause = threading.Event()
        newest = -1
        while True:
            try:
                with self._database.read() as session:
                    newest = session.execute(select(func.max(Event.id))).scalar() or 0
            except SQLAlchemyError:
                log.exception("cannot read progress events")
            with self._changed:
                if newest != self._newest or self._stopped:
                    self._newest = newest
                    self._changed.notify_all()
                if self._stopped or not self._watching:
                    self._thread = None
                    return
            pause.wait(POLL_SECONDS)
