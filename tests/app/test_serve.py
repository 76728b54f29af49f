from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.config import Settings
from app.supervisor import check_exposure
from tests.app.helpers import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]
SLOW = "import time\n\ntime.sleep(20)\n"
GIVEN = {
    "source": "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef one(x_ptr):\n    tl.store(x_ptr, 1)\n",
    "args": {"x_ptr": "*i32"},
    "targets": ["sm_80"],
}


@dataclass
class Served:
    """A running ``loupe serve`` with all its processes."""

    process: subprocess.Popen[str]
    port: int
    home: Path

    def ask(self, method: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        data = json.loads(answer.read())
        connection.close()
        assert answer.status < 300, data
        return data

    def submit(self, body: object = GIVEN) -> str:
        trace: str = self.ask("POST", "/api/v1/compiles", body)["traces"][0]
        return trace

    def tell(self, trace: str) -> Any:
        return self.ask("GET", f"/api/v1/traces/{trace}")

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, *words: str) -> psutil.Process:
        """The supervisor's own child whose command line has these words."""
        own = psutil.Process(self.process.pid).children()
        (found,) = [child for child in own if all(word in child.cmdline() for word in words)]
        return found


@contextmanager
def serve(home: Path) -> Iterator[Served]:
    """Start a server on a free port and wait until it says that it serves; end it and all it started."""
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--home", str(home)]
    with (home.parent / "serve.log").open("a") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
    everything: list[psutil.Process] = []
    try:
        assert process.stdout
        line = process.stdout.readline()
        match = re.fullmatch(r"Loupe serves http://127\.0\.0\.1:(\d+)/\n", line)
        assert match, (line, (home.parent / "serve.log").read_text())
        yield Served(process, int(match[1]), home)
    finally:
        if process.poll() is None:
            everything = psutil.Process(process.pid).children(recursive=True)
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout:
            process.stdout.close()
        for left in psutil.wait_procs(everything, 5)[1]:
            left.kill()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("served") / "home") as served:
        until(lambda: served.ask("GET", "/about.json")["worker"] == "ready")
        yield served


def open_stream(served: Served, trace: str, last: int | None = None) -> Iterator[tuple[int, str, Any]]:
    """Ask for a trace's events; return an iterator over id (0 for none), name and data."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    connection.request("GET", f"/api/v1/traces/{trace}/events", headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    return read_events(connection, answer)


def read_events(
    connection: http.client.HTTPConnection, answer: http.client.HTTPResponse
) -> Iterator[tuple[int, str, Any]]:
    event = {"id": "0"}
    with answer:
        for raw in answer:
            name, colon, value = raw.decode().rstrip("\n").partition(": ")
            if colon and name:
                event[name] = value
            elif not raw.strip() and "event" in event:
                yield int(event["id"]), event["event"], json.loads(event["data"])
                event = {"id": "0"}
    connection.close()


def test_stream_tells_everything_and_ends(served: Served) -> None:
    trace = served.submit()
    found = list(open_stream(served, trace))
    kinds = [kind for _, kind, _ in found]
    assert kinds[0] == "state"
    assert kinds[-1] == "done"
    assert {"stage", "pass", "artifact", "passes-ready"} <= set(kinds)
    assert found[-1][2] == {"status": "ok"}
    ids = [event for event, _, _ in found]
    assert ids == sorted(set(ids))
    assert served.tell(trace)["status"] == "ok"


def test_stream_continues_after_a_broken_connection(served: Served) -> None:
    trace = served.submit({**GIVEN, "options": {"num_warps": 1}})
    whole = list(open_stream(served, trace))
    assert list(open_stream(served, trace, last=whole[3][0])) == whole[4:]
    assert [kind for _, kind, _ in open_stream(served, trace, last=whole[-1][0])] == ["done"]
    assert list(open_stream(served, trace, last=-1)) == whole


def test_many_watch_one_compilation(served: Served) -> None:
    trace = served.submit({**GIVEN, "options": {"num_warps": 2}})
    found: list[list[tuple[int, str, Any]]] = []
    watchers = [threading.Thread(target=lambda: found.append(list(open_stream(served, trace)))) for _ in range(20)]
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.join()
    assert len(found) == 20
    assert all(events == found[0] for events in found)


def test_compilation_survives_the_death_of_its_worker(served: Served) -> None:
    trace = served.submit({"source": "import time\n\ntime.sleep(2)\n" + GIVEN["source"], **_args()})
    until(lambda: served.tell(trace)["status"] == "running")
    worker = served.child("worker", "compile")
    below = worker.children(recursive=True)
    worker.kill()
    assert psutil.wait_procs(below, 10)[1] == []
    assert [kind for _, kind, _ in open_stream(served, trace)][-1] == "done"
    assert served.tell(trace)["status"] == "ok"
    rows = sqlite3.connect(served.home / "loupe.db")
    assert rows.execute("SELECT attempts FROM traces WHERE id = ?", (trace,)).fetchone() == (2,)
    rows.close()
    assert served.child("worker", "compile").pid != worker.pid


def _args() -> dict[str, Any]:
    return {"args": GIVEN["args"], "targets": GIVEN["targets"]}


def test_home_is_its_owners_only(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    before = os.umask(0o022)
    try:
        with serve(home) as served:
            until(lambda: served.ask("GET", "/about.json")["worker"] == "ready")
            trace = served.submit()
            assert [kind for _, kind, _ in open_stream(served, trace)][-1] == "done"
            served.ask("GET", f"/api/v1/traces/{trace}/diff?from=ttir:0&to=ttir:1")
            sandboxes = home / "slots"
            found = [path for path in home.rglob("*") if sandboxes not in path.parents]
    finally:
        os.umask(before)
    names = {path.name for path in found}
    assert {"loupe.db", "loupe.db-wal", "queue.db", "blobs", "cache", "slots"} <= names
    assert any(name.endswith(".loupe") for name in names)
    assert [path for path in home.rglob("*") if path.exists() and path.stat().st_mode & 0o077] == []


def test_damaged_queue_is_moved_away_and_replaced_while_serving(served: Served) -> None:
    queue = served.home / "queue.db"
    for suffix in ("-wal", "-shm"):
        (served.home / f"queue.db{suffix}").unlink(missing_ok=True)
    queue.write_bytes(b"no database" * 1000)
    trace = served.submit({**GIVEN, "options": {"num_warps": 8}})
    assert [kind for _, kind, _ in open_stream(served, trace)][-1] == "done"
    until(lambda: list(served.home.glob("queue.db.damaged-*")))
    trace = served.submit({**GIVEN, "options": {"num_warps": 16}})
    assert [kind for _, kind, _ in open_stream(served, trace)][-1] == "done"


def test_web_server_that_dies_comes_back(served: Served) -> None:
    web = served.child("app.web")
    web.kill()

    def answers() -> bool:
        try:
            return bool(served.ask("GET", "/health")["status"] == "ok")
        except (OSError, http.client.HTTPException):
            return False

    until(lambda: web.pid not in [child.pid for child in psutil.Process(served.process.pid).children()])
    until(answers)


def test_port_that_is_taken_is_said_to_be(served: Served, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(served.port), "--home", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 1
    assert f"port {served.port} on 127.0.0.1 is in use; choose another with --port" in ended.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_address_that_others_reach_needs_a_word(tmp_path: Path, host: str) -> None:
    command = [
        sys.executable,
        "-m",
        "app.cli",
        "serve",
        "--port",
        "0",
        "--home",
        str(tmp_path / "home"),
        "--host",
        host,
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 1
    assert "Loupe has no login" in ended.stderr
    assert "--no-login" in ended.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_own_addresses_need_none(host: str) -> None:
    check_exposure(Settings(home=Path("/nowhere"), host=host))


def test_address_that_others_reach_is_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOUPE_NO_LOGIN", "1")
    for settings in (Settings.from_environment(host="0.0.0.0"), Settings(Path("/nowhere"), "0.0.0.0", no_login=True)):
        caplog.clear()
        check_exposure(settings)
        assert "no login: whoever reaches 0.0.0.0 can read all traces and compile" in caplog.text


def test_image_and_composition_say_that_there_is_no_login() -> None:
    assert 'CMD ["serve", "--host", "0.0.0.0", "--no-login"]' in (ROOT / "Dockerfile").read_text()
    composition = (ROOT / "compose.yaml").read_text()
    assert 'LOUPE_NO_LOGIN: "1"' in composition
    assert '"127.0.0.1:8000:8000"' in composition


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_stop_ends_everything_and_puts_the_job_back(tmp_path: Path, signum: signal.Signals) -> None:
    with serve(tmp_path / "home") as served:
        trace = served.submit({"source": SLOW, "targets": ["sm_80"]})
        until(lambda: served.tell(trace)["status"] == "running")
        stream = open_stream(served, trace)
        everything = served.children()
        assert len(everything) >= 4
        served.process.send_signal(signum)
        assert "done" not in [kind for _, kind, _ in stream]
        assert served.process.wait(20) == 0
        assert psutil.wait_procs(everything, 5)[1] == []
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", served.port), timeout=5)
    assert "Traceback" not in (tmp_path / "serve.log").read_text()
    rows = sqlite3.connect(tmp_path / "home" / "loupe.db")
    assert rows.execute("SELECT status, attempts FROM traces").fetchall() == [("queued", 0)]
    rows.close()


def test_killed_server_leaves_no_process_and_its_jobs_go_on(tmp_path: Path) -> None:
    with serve(tmp_path / "home") as served:
        trace = served.submit({"source": "import time\n\ntime.sleep(3)\n" + GIVEN["source"], **_args()})
        until(lambda: served.tell(trace)["status"] == "running")
        everything = served.children()
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.wait()
        assert psutil.wait_procs(everything, 20)[1] == []
    with serve(tmp_path / "home") as served:
        until(lambda: served.tell(trace)["status"] == "ok")
