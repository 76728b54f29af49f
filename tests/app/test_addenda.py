from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, update

from app import addendum_jobs, leftovers, workers
from app.addendum_jobs import PREFIX
from app.models import AddendumJob, AddendumRow, Event
from app.runner import Runner
from app.services import Services
from pipelines.trace import Manifest
from pipelines.triton_path.compile import Compiler
from tests.app.helpers import together
from tests.app.test_runner import GIVEN, HEAD, make_runner, submit
from tests.conftest import EXAMPLES

UNSTEADY = (
    "import time\n" + HEAD + "K = tl.constexpr(time.time_ns() % 1_000_003)\n\n\n"
    "@triton.jit\ndef unsteady(x_ptr):\n    tl.store(x_ptr, tl.load(x_ptr) + K)\n"
)
FAILING = HEAD + "@triton.jit\ndef failing(x_ptr):\n    tl.store(x_ptr, undefined)\n"


@pytest.fixture
def runner(services: Services, compiler: Compiler) -> Iterator[Runner]:
    yield from make_runner(services, compiler)


@pytest.fixture
def trace(client: FlaskClient, runner: Runner) -> str:
    trace = submit(client, GIVEN)
    runner.run(trace)
    return trace


def ask(client: FlaskClient, trace: str, kind: str = "llvm-passes") -> dict[str, Any]:
    answer = client.post(f"/api/v1/traces/{trace}/{kind}", json={})
    assert answer.status_code == 202, answer.text
    told: dict[str, Any] = answer.get_json()
    return told


def tell(client: FlaskClient, trace: str, kind: str = "llvm-passes") -> dict[str, Any]:
    told: dict[str, Any] = client.get(f"/api/v1/traces/{trace}/{kind}").get_json()
    return told


def jobs_of(services: Services) -> list[AddendumJob]:
    with services.database.read() as session:
        return list(session.execute(select(AddendumJob)).scalars())


def make(client: FlaskClient, services: Services, runner: Runner, trace: str, kind: str = "llvm-passes") -> None:
    assert ask(client, trace, kind)["status"] == "queued"
    runner.run(PREFIX + next(job.id for job in jobs_of(services) if job.kind == kind))


def test_llvm_passes_come_on_demand_and_are_read_as_other_passes_are(
    client: FlaskClient, services: Services, runner: Runner, trace: str
) -> None:
    before = client.get(f"/api/v1/traces/{trace}").get_json()
    assert before["llvm_passes"]["status"] == "absent"
    assert client.get(f"/api/v1/traces/{trace}/passes/llvm-ir:7").status_code == 404
    assert client.get(f"/t/{trace}?pass=llvm-ir:7").status_code == 404
    make(client, services, runner, trace)

    told = tell(client, trace)
    assert (told["status"], told["note"]) == ("done", None)
    optimizer, codegen = told["stages"]
    assert (optimizer["name"], codegen["name"]) == ("llvm-ir", "llvm-codegen")
    after = client.get(f"/api/v1/traces/{trace}").get_json()
    assert Manifest.model_validate_json(json.dumps(after["manifest"])).content == after["content"]
    assert after["manifest"] == before["manifest"]
    artifact = next(a for a in after["manifest"]["artifacts"] if a["name"] == "llvm-ir")["digest"]
    assert optimizer["passes"][-1]["text"] == codegen["input"] == artifact
    assert {f"llvm-ir:{p['ordinal']}" for p in optimizer["passes"]} <= after["summary"]["rows"].keys()
    changed = [address for address, row in after["summary"]["rows"].items() if row["changed"]]
    assert any(address.startswith("llvm-ir:") for address in changed)

    one = client.get(f"/api/v1/traces/{trace}/passes/llvm-ir:7").get_json()
    assert one["name"] == optimizer["passes"][6]["name"]
    assert one["syntax"] == "llvm"
    assert one["ir"].startswith("; ModuleID")
    text = client.get(f"/api/v1/traces/{trace}/texts/{one['text']}")
    assert text.data.decode() == one["ir"]
    last = f"llvm-ir:{len(optimizer['passes'])}"
    diff = client.get(f"/api/v1/traces/{trace}/diff?from={last}&to=llvm-ir").get_json()
    assert (diff["plus"], diff["minus"]) == (0, 0)
    address = next(a for a in changed if a.startswith("llvm-ir:"))
    row = after["summary"]["rows"][address]
    diff = client.get(f"/api/v1/traces/{trace}/diff?from={row['against']}&to={address}").get_json()
    assert (diff["plus"], diff["minus"]) == (row["plus"], row["minus"]) != (0, 0)
    found = client.get(f"/api/v1/traces/{trace}/search?q=Machine%20code%20for").get_json()
    assert found["hits"][0]["address"].startswith("llvm-codegen:")


def test_page_shows_the_stages_and_its_permalink_leads_to_a_pass(
    client: FlaskClient, services: Services, runner: Runner, trace: str
) -> None:
    assert 'data-stage="llvm-ir"' not in client.get(f"/t/{trace}").text
    make(client, services, runner, trace)
    page = client.get(f"/t/{trace}?pass=llvm-ir:7&view=text")
    assert page.status_code == 200
    assert 'data-stage="llvm-ir"' in page.text
    assert 'data-address="llvm-codegen:3"' in page.text
    assert "source_filename" in page.text
    twin = client.get(f"/t/{trace}.json?pass=llvm-ir:7").get_json()
    assert (twin["view"]["address"], twin["view"]["against"]) == ("llvm-ir:7", "llvm-ir:6")


def test_events_tell_of_each_pass_and_of_the_end(
    client: FlaskClient, services: Services, runner: Runner, trace: str
) -> None:
    own = client.get(f"/api/v1/traces/{trace}/events").text
    make(client, services, runner, trace)
    stream = client.get(f"/api/v1/traces/{trace}/llvm-passes/events").text
    told = tell(client, trace)
    passes = sum(len(stage["passes"]) for stage in told["stages"])
    assert stream.count("event: pass\n") == passes
    assert '"name":"InstCombinePass"' in stream
    assert stream.rstrip().endswith('data: {"status":"done","message":null}')
    assert client.get(f"/api/v1/traces/{trace}/events").text == own


def test_many_clicks_make_one_job(client: FlaskClient, services: Services, runner: Runner, trace: str) -> None:
    app = client.application
    answers = together(8, lambda _: app.test_client().post(f"/api/v1/traces/{trace}/llvm-passes", json={}).get_json())
    assert {answer["status"] for answer in answers} == {"queued"}
    (job,) = jobs_of(services)
    together(2, lambda _: runner.run(PREFIX + job.id))
    assert ask(client, trace)["status"] == "done"
    assert [(j.id, j.status, j.attempts) for j in jobs_of(services)] == [(job.id, "done", 1)]
    with services.database.read() as session:
        assert len(session.execute(select(AddendumRow).where(AddendumRow.kind == "llvm-passes")).all()) == 1


def test_another_trace_of_the_same_input_has_them_too(
    client: FlaskClient, services: Services, runner: Runner, trace: str
) -> None:
    make(client, services, runner, trace)
    again = submit(client, GIVEN)
    assert again != trace
    assert tell(client, again)["status"] == "done"


def test_what_compiles_differently_is_not_attached(client: FlaskClient, services: Services, runner: Runner) -> None:
    trace = submit(client, {**GIVEN, "source": UNSTEADY})
    runner.run(trace)
    make(client, services, runner, trace)
    told = tell(client, trace)
    assert told["status"] == "failed"
    assert "gave another llvm-ir than the trace has" in told["message"]
    assert told["stages"] == []
    assert "gave another llvm-ir" in client.get(f"/api/v1/traces/{trace}/llvm-passes/events").text
    assert client.get(f"/api/v1/traces/{trace}/passes/llvm-ir:7").status_code == 404
    assert list(services.settings.added.glob("*/*")) == []
    # Asking again tries again, and its stream does not end with what was told before.
    assert ask(client, trace)["status"] == "queued"
    with services.database.read() as session:
        kinds = session.execute(select(Event.kind).where(Event.kind.startswith("llvm-passes:"))).scalars().all()
    assert kinds == ["llvm-passes:state"]


def test_traces_that_cannot_have_them_say_why(
    client: FlaskClient, services: Services, runner: Runner, stored: str
) -> None:
    failing = submit(client, {**GIVEN, "source": FAILING})
    waiting = tell(client, failing)
    assert (waiting["status"], waiting["message"]) == ("unavailable", "The trace is still being compiled.")
    runner.run(failing)
    for trace, words in ((stored, "was uploaded"), (failing, "has no LLVM IR")):
        told = tell(client, trace)
        assert told["status"] == "unavailable"
        assert words in told["message"]
        refused = client.post(f"/api/v1/traces/{trace}/llvm-passes", json={})
        assert refused.status_code == 409
        assert words in refused.get_json()["error"]["message"]
    assert jobs_of(services) == []


def test_pass_times_come_from_compilations_without_dumps(
    client: FlaskClient, services: Services, runner: Runner, trace: str
) -> None:
    make(client, services, runner, trace, "pass-times")
    told = tell(client, trace, "pass-times")
    assert told["status"] == "done"
    times = told["times"]
    assert times["runs"] == 3
    assert times["unmapped"] == []
    manifest = client.get(f"/api/v1/traces/{trace}").get_json()["manifest"]
    top = [f"{s['name']}:{p['ordinal']}" for s in manifest["stages"] for p in s["passes"] if p["parent"] is None]
    assert [item["address"] for item in times["passes"]] == top
    assert all(0 <= item["least"] <= item["median"] <= item["most"] for item in times["passes"])
    assert any(item["median"] > 0 for item in times["passes"])
    stream = client.get(f"/api/v1/traces/{trace}/pass-times/events").text
    assert stream.count("event: run\n") == 3


def test_job_of_a_dead_worker_is_done_by_another_and_given_up_after_the_second(
    client: FlaskClient, services: Services, trace: str
) -> None:
    ask(client, trace)
    (job,) = jobs_of(services)
    for expected in ("queued", "failed"):
        with services.database.write() as session:
            assert addendum_jobs.claim(session, job.id, "w" * 22) is not None
        with services.database.write() as session:
            sent = workers.sweep(session)
        assert (PREFIX + job.id in sent) == (expected == "queued")
        assert jobs_of(services)[0].status == expected
    assert "died" in tell(client, trace)["message"]


def test_lost_message_is_sent_again(client: FlaskClient, services: Services, trace: str) -> None:
    ask(client, trace)
    (job,) = jobs_of(services)
    with services.database.write() as session:
        session.execute(update(AddendumJob).values(queued_at=AddendumJob.queued_at - 60))
        assert PREFIX + job.id in workers.sweep(session)


def test_stopped_worker_puts_its_job_back(client: FlaskClient, services: Services, runner: Runner, trace: str) -> None:
    ask(client, trace)
    (job,) = jobs_of(services)
    runner.stop(0.0)
    runner.run(PREFIX + job.id)
    assert jobs_of(services)[0].status == "queued"


def test_job_that_outlasts_its_worker_goes_back_and_is_not_counted(
    client: FlaskClient, services: Services, runner: Runner
) -> None:
    trace = submit(client, {"source": (EXAMPLES / "matmul.py").read_text(), "targets": ["sm_80"]})
    runner.run(trace)
    ask(client, trace)
    (job,) = jobs_of(services)
    thread = threading.Thread(target=runner.run, args=(PREFIX + job.id,))
    thread.start()
    while jobs_of(services)[0].status != "running":
        time.sleep(0.01)
    runner.stop(0.0)
    (back,) = jobs_of(services)
    assert (back.status, back.attempts, back.claim) == ("queued", 0, None)
    thread.join()
    assert jobs_of(services)[0].status == "queued"


def test_abandoned_job_goes_back_at_its_next_event(client: FlaskClient, services: Services, runner: Runner) -> None:
    trace = submit(client, {"source": (EXAMPLES / "matmul.py").read_text(), "targets": ["sm_80"]})
    runner.run(trace)
    ask(client, trace)
    (job,) = jobs_of(services)
    thread = threading.Thread(target=runner.run, args=(PREFIX + job.id,))
    thread.start()
    while jobs_of(services)[0].status != "running":
        time.sleep(0.01)
    runner.abandon()
    thread.join()
    assert jobs_of(services)[0].status == "queued"
    assert tell(client, trace)["stages"] == []


def test_file_that_no_addendum_names_is_swept_and_others_are_kept(
    client: FlaskClient, services: Services, runner: Runner, trace: str
) -> None:
    make(client, services, runner, trace)
    (kept,) = services.settings.added.glob("*/*.loupe")
    left = kept.parent / f"{'0' * 64}.loupe"
    left.write_bytes(b"x")
    for path in (kept, left):
        os.utime(path, (0, 0))
    leftovers.remove(services)
    assert (kept.exists(), left.exists()) == (True, False)


def test_damaged_file_is_told_and_comes_back(
    client: FlaskClient, services: Services, runner: Runner, trace: str
) -> None:
    make(client, services, runner, trace)
    (path,) = services.settings.added.glob("*/*.loupe")
    path.write_bytes(b"no file")
    told = tell(client, trace)
    assert (told["status"], told["stages"]) == ("failed", [])
    assert "damaged" in told["message"]
    assert client.get(f"/api/v1/traces/{trace}/passes/ttir:1").status_code == 200
    make(client, services, runner, trace)
    assert tell(client, trace)["status"] == "done"
