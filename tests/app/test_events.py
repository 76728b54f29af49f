from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import events, jobs
from app.database import Database
from app.event_log import BATCH_SECONDS, POLL_SECONDS, EventBatch, Watcher, append
from app.models import Event, Trace
from app.services import Services
from tests.app.helpers import compile_body, error_of


@pytest.fixture
def trace(client: FlaskClient) -> str:
    found: str = client.post("/api/v1/compiles", json=compile_body()).get_json()["traces"][0]
    return found


def finish(services: Services, trace: str) -> None:
    with services.database.write() as session:
        job = jobs.claim(session, trace, "worker")
        assert job
        jobs.finish(session, job, jobs.Result("failed", None, None))


def reader(database: Database, trace: str) -> Callable[[int], Sequence[Event]]:
    def read(after: int) -> Sequence[Event]:
        with database.read() as session:
            rows = select(Event).where(Event.trace_id == trace, Event.id > after).order_by(Event.id)
            return session.execute(rows).scalars().all()

    return read


def test_finished_trace_tells_its_events_and_ends(client: FlaskClient, services: Services, trace: str) -> None:
    finish(services, trace)
    answer = client.get(f"/api/v1/traces/{trace}/events")
    assert answer.mimetype == "text/event-stream"
    assert answer.headers["Cache-Control"] == "no-store"
    frames = answer.text.split("\n\n")
    assert frames[0] == "retry: 1000"
    assert [frame.split("\n")[1] for frame in frames[1:-1]] == ["event: state", "event: state", "event: done"]
    assert frames[-2].split("\n")[2] == 'data: {"status":"failed"}'


def test_finished_trace_ends_even_without_events(client: FlaskClient, services: Services, trace: str) -> None:
    finish(services, trace)
    with services.database.write() as session:
        session.query(Event).delete()
    assert client.get(f"/api/v1/traces/{trace}/events").text.endswith('event: done\ndata: {"status": "failed"}\n\n')


@pytest.mark.parametrize("last", ["x", "-1", "9" * 40, "²", ""])
def test_last_id_that_is_none_starts_from_the_beginning(
    client: FlaskClient, services: Services, trace: str, last: str
) -> None:
    finish(services, trace)
    answer = client.get(
        f"/api/v1/traces/{trace}/events", headers={"Last-Event-ID": last.encode("utf-8").decode("latin-1")}
    )
    assert answer.text.count("event: ") == 3


def test_streams_leave_threads_for_pages(client: FlaskClient, trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_STREAMS", 0)
    answer = client.get(f"/api/v1/traces/{trace}/events")
    assert answer.status_code == 503
    assert "Reload in a moment" in error_of(answer)["message"]


def test_batch_keeps_the_order_and_writes_all(services: Services, trace: str) -> None:
    batch = EventBatch(services.database)
    for number in range(500):
        batch.add(trace, "pass", {"ordinal": number})
    batch.close()
    with services.database.read() as session:
        rows = session.query(Event).filter_by(kind="pass").order_by(Event.id).all()
    assert [row.data["ordinal"] for row in rows] == list(range(500))


def test_flush_writes_what_was_added_before(services: Services, trace: str) -> None:
    batch = EventBatch(services.database)
    batch.add(trace, "pass", {"ordinal": 1})
    batch.flush()
    with services.database.read() as session:
        assert session.query(Event).filter_by(kind="pass").count() == 1
    batch.close()


def test_events_that_cannot_be_written_stop_nothing(services: Services, trace: str) -> None:
    batch = EventBatch(services.database)
    batch.add("nobody", "pass", {})
    batch.flush()
    batch.add(trace, "pass", {})
    batch.close()
    with services.database.read() as session:
        assert session.query(Event).filter_by(kind="pass").count() == 1


def test_watchers_are_woken_by_another_process(services: Services, trace: str) -> None:
    watcher, other = Watcher(services.database), Database(services.settings.database)
    stream = watcher.watch(reader(services.database, trace), 0, 30.0)
    (first,) = next(stream)
    assert (first.kind, first.data) == ("state", {"status": "queued"})
    later = threading.Timer(0.1, lambda: write(other, trace))
    later.start()
    (second,) = next(stream)
    assert (second.kind, second.data) == ("stage", {"stage": "ttir"})
    later.join()
    watcher.stop()
    assert list(stream) == []
    assert watcher.watching == 0
    other.close()


class Counting(Database):
    """Counts how often it is read and written."""

    reads = writes = 0

    @contextmanager
    def read(self) -> Iterator[Session]:
        self.reads += 1
        with super().read() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        self.writes += 1
        with super().write() as session:
            yield session


@pytest.mark.parametrize("kind", ["state", "pass"])
def test_event_is_seen_within_two_looks_after_an_idle_time(services: Services, trace: str, kind: str) -> None:
    """An event waits for one batch to be written and for two looks at most, which together are well below 100 ms."""
    looks, writer = Counting(services.settings.database), Counting(services.settings.database)
    watcher, batch = Watcher(looks), EventBatch(writer)
    stream = watcher.watch(reader(services.database, trace), 0, 0.3)
    assert len(next(stream)) == 1
    assert next(stream) == (), "it is idle"
    written: list[int] = []
    insert = writer.write

    @contextmanager
    def note() -> Iterator[Session]:
        with insert() as session:
            yield session
        written.append(looks.reads)

    writer.write = note  # type: ignore[method-assign]  # notes how many looks there were when the event was there
    batch.add(trace, kind, {"number": 1})
    (event,) = next(stream)
    seen = looks.reads
    assert (event.kind, event.data) == (kind, {"number": 1})
    batch.close()
    assert len(written) == 1
    assert seen - written[0] <= 2
    assert BATCH_SECONDS + 2 * POLL_SECONDS <= 0.06
    stream.close()  # type: ignore[attr-defined]  # a generator
    watcher.stop()
    looks.close()
    writer.close()


def write(database: Database, trace: str) -> None:
    with database.write() as session:
        append(session, trace, "stage", stage="ttir")


def test_quiet_stream_yields_nothing_now_and_then(services: Services, trace: str) -> None:
    watcher = Watcher(services.database)
    stream = watcher.watch(reader(services.database, trace), 0, 0.05)
    assert len(next(stream)) == 1
    assert next(stream) == ()
    stream.close()  # type: ignore[attr-defined]  # a generator
    assert watcher.watching == 0
    watcher.stop()


def test_events_go_with_their_trace(services: Services, trace: str) -> None:
    with services.database.write() as session:
        session.delete(session.get_one(Trace, trace))
    with services.database.read() as session:
        assert session.query(Event).count() == 0
