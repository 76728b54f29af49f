import os
import subprocess
import time
from collections.abc import Sequence

import pytest
from flask.testing import FlaskClient
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from app import jobs, workers
from app.jobs import MAX_ATTEMPTS, Job, Result
from app.models import Event, Trace, WorkerRow
from app.processes import identity
from app.services import Services
from tests.app.helpers import SOURCE, compile_body, together

OK = Result("ok", "a" * 64, "scale", "k" * 64, cacheable=True)


@pytest.fixture
def queued(client: FlaskClient) -> str:
    found: str = client.post("/api/v1/compiles", json=compile_body()).get_json()["traces"][0]
    return found


def claim(services: Services, trace_id: str, worker: str = "worker") -> Job | None:
    with services.database.write() as session:
        return jobs.claim(session, trace_id, worker)


def trace(services: Services, trace_id: str) -> Trace:
    with services.database.read() as session:
        return session.get_one(Trace, trace_id)


def kinds(services: Services, trace_id: str) -> Sequence[tuple[str, dict[str, object]]]:
    with services.database.read() as session:
        events = session.query(Event).filter_by(trace_id=trace_id).order_by(Event.id)
        return [(event.kind, event.data) for event in events]


def test_one_of_many_workers_gets_the_job(services: Services, queued: str) -> None:
    found = [job for job in together(8, lambda index: claim(services, queued, f"w{index}")) if job]
    assert len(found) == 1
    assert found[0].spec.source == SOURCE.decode()
    assert found[0].spec.target == "sm_80"
    assert trace(services, queued).attempts == 1


def test_job_that_is_done_twice_is_finished_once(services: Services, queued: str) -> None:
    first = claim(services, queued)
    assert first
    with services.database.write() as session:
        assert jobs.put_back(session, queued, first.claim, count=True)
    second = claim(services, queued)
    assert second
    with services.database.write() as session:
        assert not jobs.finish(session, first, Result("ok", "f" * 64, "scale"))
        assert not jobs.show_interim(session, first, "f" * 64, "scale")
        assert jobs.finish(session, second, OK)
        assert not jobs.finish(session, second, OK)
    assert trace(services, queued).content == OK.content
    assert [kind for kind, _ in kinds(services, queued)].count("done") == 1


def test_content_flips_once_from_interim_to_final(services: Services, client: FlaskClient, queued: str) -> None:
    job = claim(services, queued)
    assert job
    with services.database.write() as session:
        assert jobs.show_interim(session, job, "b" * 64, "scale")
    shown = trace(services, queued)
    assert (shown.status, shown.content) == ("running", "b" * 64)
    with services.database.write() as session:
        assert jobs.finish(session, job, OK)
        assert not jobs.show_interim(session, job, "c" * 64, "scale")
    assert trace(services, queued).content == "a" * 64
    with pytest.raises(IntegrityError), services.database.write() as session:
        session.execute(update(Trace).where(Trace.id == queued).values(content="c" * 64))
    assert [kind for kind, _ in kinds(services, queued)] == ["state", "state", "passes-ready", "done"]
    assert client.get(f"/api/v1/traces/{queued}").status_code == 500


def test_job_put_back_on_a_stop_does_not_count(services: Services, queued: str) -> None:
    for _ in range(MAX_ATTEMPTS + 2):
        job = claim(services, queued)
        assert job
        with services.database.write() as session:
            assert jobs.put_back(session, queued, job.claim, count=False)
    assert trace(services, queued).attempts == 0
    assert kinds(services, queued)[-1] == ("state", {"status": "queued"})


def dead_worker(services: Services) -> str:
    """Register a process as a worker and let it die."""
    process = subprocess.Popen(["/bin/sleep", "60"])
    with services.database.write() as session:
        worker = workers.register(session, "compile")
        row = session.get_one(WorkerRow, worker)
        row.pid, row.process = process.pid, identity(process.pid)
    with services.database.write() as session:
        assert workers.is_alive(session.get_one(WorkerRow, worker))
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert identity(process.pid) is None, "it is a zombie"
    process.wait()
    return worker


def sweep(services: Services, lost_after: float = 10.0) -> list[str]:
    with services.database.write() as session:
        return workers.sweep(session, lost_after=lost_after)


def test_job_of_a_dead_worker_is_put_back_and_given_up_in_the_end(
    services: Services, client: FlaskClient, queued: str
) -> None:
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert claim(services, queued, dead_worker(services))
        assert sweep(services) == ([queued] if attempt < MAX_ATTEMPTS else [])
    told = client.get(f"/api/v1/traces/{queued}").get_json()
    assert told["status"] == "failed"
    assert "died 3 times" in told["failure"]["message"]
    assert trace(services, queued).cacheable is False
    assert kinds(services, queued)[-1] == ("done", {"status": "failed"})


def test_job_of_a_living_worker_is_left_alone(services: Services, queued: str, ready_worker: str) -> None:
    assert claim(services, queued, ready_worker)
    assert sweep(services) == []
    assert trace(services, queued).status == "running"


def test_pid_that_belongs_to_another_process_now_is_no_life_sign(services: Services, ready_worker: str) -> None:
    with services.database.write() as session:
        boot, _, ticks = str(session.get_one(WorkerRow, ready_worker).process).partition(":")
        session.get_one(WorkerRow, ready_worker).process = f"{boot}:{int(ticks) - 1}"
    with services.database.read() as session:
        assert not workers.is_alive(session.get_one(WorkerRow, ready_worker))


def test_process_is_the_same_whatever_the_clock_says(services: Services, queued: str, ready_worker: str) -> None:
    with services.database.write() as session:
        session.get_one(WorkerRow, ready_worker).started -= 3600
        session.get_one(WorkerRow, ready_worker).heartbeat -= 3600
    assert claim(services, queued, ready_worker)
    assert sweep(services) == []
    with services.database.write() as session:
        session.get_one(WorkerRow, ready_worker).process = "another boot:1"
    assert sweep(services) == [queued]


@pytest.mark.parametrize(
    ("facts", "message", "state"), [(True, None, "ready"), (False, "no Landlock", "refused"), (False, None, "starting")]
)
def test_worker_that_was_taken_for_dead_comes_back(
    services: Services, queued: str, ready_worker: str, facts: bool, message: str | None, state: str
) -> None:
    with services.database.write() as session:
        row = session.get_one(WorkerRow, ready_worker)
        row.host, row.heartbeat, row.message = "elsewhere", 0.0, message
        row.facts = row.facts if facts else None
    assert claim(services, queued, ready_worker)
    assert sweep(services) == [queued]
    assert claim(services, queued, ready_worker)
    assert sweep(services) == [queued], "what a dead worker runs is put back in every sweep"
    with services.database.write() as session:
        assert session.get_one(WorkerRow, ready_worker).state == "dead"
        workers.beat(session, ready_worker)
        session.expire_all()
        assert session.get_one(WorkerRow, ready_worker).state == state
    assert claim(services, queued, ready_worker)
    assert sweep(services) == []


@pytest.mark.parametrize("worker", ["forgotten", None])
def test_job_whose_worker_nobody_knows_is_put_back(services: Services, queued: str, worker: str | None) -> None:
    assert claim(services, queued, "forgotten")
    with services.database.write() as session:
        session.execute(update(Trace).values(worker=worker))
    assert sweep(services) == [queued]


def test_worker_of_another_machine_lives_by_its_heartbeat(services: Services, queued: str, ready_worker: str) -> None:
    with services.database.write() as session:
        session.get_one(WorkerRow, ready_worker).host = "elsewhere"
    assert claim(services, queued, ready_worker)
    assert sweep(services) == []
    with services.database.write() as session:
        session.get_one(WorkerRow, ready_worker).heartbeat = time.time() - workers.STALE_SECONDS - 1
    assert sweep(services) == [queued]


def test_lost_message_is_sent_again(services: Services, queued: str) -> None:
    assert sweep(services) == []
    assert sweep(services, lost_after=0.0) == [queued]


def test_events_of_finished_traces_are_dropped_in_time(
    services: Services, queued: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = claim(services, queued)
    assert job
    with services.database.write() as session:
        assert jobs.finish(session, job, OK)
    sweep(services)
    assert len(kinds(services, queued)) == 3
    monkeypatch.setattr(jobs, "EVENTS_KEPT_SECONDS", -1)
    sweep(services)
    assert kinds(services, queued) == []


def test_old_workers_are_forgotten_but_not_what_the_last_one_said(services: Services, ready_worker: str) -> None:
    with services.database.write() as session:
        workers.retire(session, ready_worker)
        for _ in range(12):
            workers.retire(session, workers.register(session, "compile"))
    sweep(services)
    with services.database.write() as session:
        assert session.query(WorkerRow).count() == 13
        session.execute(update(WorkerRow).values(heartbeat=time.time() - workers.FORGET_SECONDS - 1))
    sweep(services)
    with services.database.read() as session:
        assert workers.facts(session)
        assert session.query(WorkerRow).count() == 9
