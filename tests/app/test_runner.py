from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app import jobs, leftovers, workers
from app.blobs import BlobStore
from app.models import AddendumRow, Event, Trace
from app.runner import Runner
from app.services import Services
from pipelines.sandbox import Limits
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.toolchain import triton_root
from tests.conftest import EXAMPLES, ROOT

HEAD = "import triton\nimport triton.language as tl\n\n\n"
ADD_ONE = HEAD + "@triton.jit\ndef add_one(x_ptr):\n    tl.store(x_ptr, tl.load(x_ptr) + 1)\n"
GIVEN: dict[str, Any] = {"source": ADD_ONE, "args": {"x_ptr": "*fp32:16"}, "targets": ["sm_80"]}


@pytest.fixture
def runner(services: Services, compiler: Compiler) -> Iterator[Runner]:
    yield from make_runner(services, compiler)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compiler]:
    compiler = Compiler(tmp_path_factory.mktemp("hasty"), limits=Limits(wall_s=3))
    compiler.start()
    yield compiler
    compiler.close()


def make_runner(services: Services, compiler: Compiler) -> Iterator[Runner]:
    with services.database.write() as session:
        worker = workers.register(session, "compile")
        workers.report(session, worker, "ready", facts=workers.facts_of(compiler))
    runner = Runner(services, compiler, worker)
    yield runner
    runner.stop(0.0)


def submit(client: FlaskClient, body: dict[str, Any]) -> str:
    answer = client.post("/api/v1/compiles", json=body)
    assert answer.status_code == 202, answer.text
    found: str = answer.get_json()["traces"][0]
    return found


def tell(client: FlaskClient, trace: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/v1/traces/{trace}").get_json()
    return found


def events(services: Services, trace: str) -> list[tuple[str, dict[str, Any]]]:
    with services.database.read() as session:
        rows = session.execute(select(Event).where(Event.trace_id == trace).order_by(Event.id)).scalars()
        return [(event.kind, event.data) for event in rows]


def blob_files(services: Services) -> list[str]:
    return [path.stem for path in services.settings.blobs.rglob("*") if path.is_file()]


def test_compiled_trace_is_whole(client: FlaskClient, services: Services, runner: Runner) -> None:
    trace = submit(client, GIVEN)
    runner.run(trace)
    told = tell(client, trace)
    assert (told["status"], told["kernel"], told["cached"], told["pending"]) == ("ok", "add_one", False, [])
    assert [stage["name"] for stage in told["manifest"]["stages"]] == ["ttir", "ttgir", "llvm-dialect"]
    assert {"llvm-ir", "ptx", "cubin", "sass"} <= {item["name"] for item in told["manifest"]["artifacts"]}
    assert told["times"]
    assert set(told["summary"]["rows"]) >= {"ttir:0", "ttgir:1", "ptx", "sass"}
    assert told["content"] in blob_files(services)


def test_what_a_worker_tells_names_no_file_of_the_machine(
    client: FlaskClient, compiler: Compiler, runner: Runner
) -> None:
    assert runner
    told = workers.facts_of(compiler).model_dump_json()
    assert "num_warps" in told
    for text in (told, client.get("/about.json").text, client.get("/api/v1/targets").text):
        assert str(triton_root()) not in text
        assert ".bc" not in text
        assert str(ROOT) not in text


def test_fresh_submission_is_compiled_again(client: FlaskClient, runner: Runner) -> None:
    first = submit(client, GIVEN)
    runner.run(first)
    again = submit(client, {**GIVEN, "fresh": True})
    assert tell(client, again)["status"] == "queued"
    runner.run(again)
    assert (tell(client, again)["status"], tell(client, again)["cached"]) == ("ok", False)
    assert tell(client, again)["content"] == tell(client, first)["content"]


def test_job_whose_end_could_not_be_written_is_put_back(
    client: FlaskClient, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = submit(client, GIVEN)
    full = OperationalError("UPDATE", {}, sqlite3.OperationalError("database or disk is full"))

    def refuse(*_: object) -> None:
        raise full

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "finish", refuse)
        with pytest.raises(OperationalError):
            runner.run(trace)
        assert tell(client, trace)["status"] == "running"
    assert runner.put_back_lost() == [trace]
    assert runner.put_back_lost() == []
    runner.run(trace)
    assert tell(client, trace)["status"] == "ok"


def test_full_disk_is_told_without_a_traceback(
    client: FlaskClient, runner: Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    trace = submit(client, GIVEN)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/secret/path")

    monkeypatch.setattr(BlobStore, "put", refuse)
    runner.run(trace)
    failure = tell(client, trace)["failure"]
    assert failure["message"] == "Loupe could not compile or store this kernel: No space left on device."
    assert "Traceback" not in caplog.text


def test_progress_comes_in_order_and_names_every_pass(client: FlaskClient, services: Services, runner: Runner) -> None:
    trace = submit(client, GIVEN)
    runner.run(trace)
    found = events(services, trace)
    kinds = [kind for kind, _ in found]
    assert kinds[:2] == ["state", "state"]
    assert kinds[-1] == "done"
    assert kinds.index("passes-ready") > max(at for at, kind in enumerate(kinds) if kind == "pass")
    assert [data["stage"] for kind, data in found if kind == "stage"][:3] == ["ttir", "ttgir", "llvm-dialect"]
    manifest = tell(client, trace)["manifest"]
    for stage in manifest["stages"]:
        told = [data["ordinal"] for kind, data in found if kind == "pass" and data["stage"] == stage["name"]]
        assert told == [item["ordinal"] for item in stage["passes"]]


def test_passes_can_be_read_before_sass_is_there(
    client: FlaskClient, services: Services, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = submit(client, GIVEN)
    seen: list[dict[str, Any]] = []
    go_on = threading.Event()
    finish = runner._store

    def wait_then_finish(*args: Any) -> None:
        assert go_on.wait(30)
        finish(*args)

    monkeypatch.setattr(runner, "_store", wait_then_finish)
    thread = threading.Thread(target=runner.run, args=(trace,))
    thread.start()
    try:
        while "summary" not in [kind for kind, _ in events(services, trace)]:
            time.sleep(0.02)
        seen.append(tell(client, trace))
        digest = seen[0]["manifest"]["stages"][0]["input"]
        assert client.get(f"/api/v1/traces/{trace}/texts/{digest}").status_code == 200
        assert client.get(f"/t/{trace}").status_code == 200
    finally:
        go_on.set()
        thread.join()
    final = tell(client, trace)
    assert (seen[0]["status"], seen[0]["pending"]) == ("running", ["ptxas-log", "sass"])
    assert "sass" not in seen[0]["summary"]["rows"]
    assert final["manifest"]["stages"] == seen[0]["manifest"]["stages"]
    assert final["content"] != seen[0]["content"]
    assert (seen[0]["resources"], final["resources"]["registers"] > 0) == (None, True)
    passes = {name: row for name, row in final["summary"]["rows"].items() if name not in ("ptxas-log", "sass")}
    assert passes == seen[0]["summary"]["rows"]
    assert set(blob_files(services)) == {final["content"], seen[0]["content"]}
    for path in services.settings.blobs.rglob("*.loupe"):
        os.utime(path, (0, 0))
    assert leftovers.remove(services) == 1
    assert blob_files(services) == [final["content"]]


def test_same_input_is_compiled_once(client: FlaskClient, services: Services, runner: Runner) -> None:
    first = submit(client, GIVEN)
    runner.run(first)
    second = submit(client, GIVEN)
    assert (tell(client, second)["status"], tell(client, second)["cached"]) == ("ok", True)
    assert tell(client, second)["times"] == tell(client, first)["times"]
    assert [kind for kind, _ in events(services, second)] == ["done"]


def test_same_input_queued_before_it_was_known_is_not_compiled_again(
    client: FlaskClient, services: Services, runner: Runner
) -> None:
    first, second = submit(client, GIVEN), submit(client, GIVEN)
    runner.run(first)
    runner.run(second)
    assert tell(client, second)["cached"] is True
    assert tell(client, second)["content"] == tell(client, first)["content"]
    assert "stage" not in [kind for kind, _ in events(services, second)]


def test_running_twice_is_harmless(client: FlaskClient, services: Services, runner: Runner) -> None:
    trace = submit(client, GIVEN)
    threads = [threading.Thread(target=runner.run, args=(trace,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [kind for kind, _ in events(services, trace)].count("done") == 1
    runner.run(trace)
    runner.run("x" * 22)
    assert tell(client, trace)["status"] == "ok"


def test_every_launch_becomes_a_trace_of_the_group(client: FlaskClient, services: Services, runner: Runner) -> None:
    body = {"source": (EXAMPLES / "matmul_autotuned.py").read_text(), "targets": ["sm_80"]}
    first = submit(client, body)
    runner.run(first)
    group = tell(client, first)["group"]
    traces = client.get(f"/api/v1/groups/{group}").get_json()["traces"]
    assert len(traces) == 3
    assert len({trace["config"] for trace in traces}) == 3
    assert [data["traces"] for kind, data in events(services, first) if kind == "group"] == [
        [trace["id"] for trace in traces[1:]]
    ]
    for trace in traces[1:]:
        runner.run(trace["id"])
    done = client.get(f"/api/v1/groups/{group}").get_json()["traces"]
    assert [trace["status"] for trace in done] == ["ok"] * 3
    assert len({trace["content"] for trace in done}) == 3
    again = client.post("/api/v1/compiles", json=body).get_json()
    assert len(again["traces"]) == 3
    assert {tell(client, trace)["status"] for trace in again["traces"]} == {"ok"}


def test_error_in_the_source_is_a_trace_with_the_line(client: FlaskClient, runner: Runner) -> None:
    source = ADD_ONE.replace("+ 1", "+ undefined_name")
    trace = submit(client, {**GIVEN, "source": source})
    runner.run(trace)
    told = tell(client, trace)
    assert told["status"] == "failed"
    assert "undefined_name" in told["failure"]["message"]
    line = source.split("\n").index("    tl.store(x_ptr, tl.load(x_ptr) + undefined_name)") + 1
    assert line in [item["line"] for item in told["manifest"]["diagnostics"]]
    assert "undefined_name" in client.get(f"/t/{trace}").text
    again = submit(client, {**GIVEN, "source": source})
    assert tell(client, again)["cached"] is True


def test_timeout_compiles_again_when_resubmitted(client: FlaskClient, services: Services, hasty: Compiler) -> None:
    (runner,) = [*make_runner_now(services, hasty)]
    body = {"source": HEAD + "while True:\n    pass\n", "targets": ["sm_80"]}
    trace = submit(client, body)
    runner.run(trace)
    told = tell(client, trace)
    assert (told["status"], told["failure"]["kind"]) == ("failed", "timeout")
    again = submit(client, body)
    assert (tell(client, again)["status"], tell(client, again)["cached"]) == ("queued", False)
    good = submit(client, GIVEN)
    runner.run(good)
    assert tell(client, good)["status"] == "ok"
    runner.stop(0.0)


def make_runner_now(services: Services, compiler: Compiler) -> list[Runner]:
    return [next(make_runner(services, compiler))]


def test_option_that_the_backend_lacks_is_a_failure_in_words(
    client: FlaskClient, services: Services, compiler: Compiler
) -> None:
    trace = submit(client, {**GIVEN, "options": {"num_wraps": 4}})  # no worker yet, so nobody knows the options
    (runner,) = make_runner_now(services, compiler)
    runner.run(trace)
    runner.stop(0.0)
    told = tell(client, trace)
    assert told["status"] == "failed"
    assert "there is no option num_wraps" in told["failure"]["message"]
    assert client.get(f"/t/{trace}").status_code == 200
    with services.database.read() as session:
        assert session.get_one(Trace, trace).cacheable is False


def test_job_that_outlasts_the_grace_is_put_back(client: FlaskClient, services: Services, hasty: Compiler) -> None:
    (runner,) = make_runner_now(services, hasty)
    trace = submit(client, {"source": HEAD + "while True:\n    pass\n", "targets": ["sm_80"]})
    thread = threading.Thread(target=runner.run, args=(trace,))
    thread.start()
    while tell(client, trace)["status"] != "running":
        time.sleep(0.01)
    runner.stop(0.1)
    assert tell(client, trace)["status"] == "queued"
    thread.join()
    assert tell(client, trace)["status"] == "queued"
    with services.database.read() as session:
        assert session.get_one(Trace, trace).attempts == 0
    assert events(services, trace)[-1] == ("state", {"status": "queued"})


def test_times_are_kept_beside_the_content(client: FlaskClient, services: Services, runner: Runner) -> None:
    trace = submit(client, GIVEN)
    runner.run(trace)
    with services.database.read() as session:
        (row,) = session.execute(select(AddendumRow)).scalars()
    assert (row.content, row.kind, row.revision) == (tell(client, trace)["content"], "times", 1)


def test_running_child_cannot_read_the_database(client: FlaskClient, services: Services, runner: Runner) -> None:
    path = str(services.settings.database)
    source = ADD_ONE + f"open({path!r}, 'rb').read()\n"
    trace = submit(client, {**GIVEN, "source": source})
    runner.run(trace)
    told = tell(client, trace)
    assert told["status"] == "failed"
    assert "Permission" in told["failure"]["message"]
    assert Path(path).exists()
