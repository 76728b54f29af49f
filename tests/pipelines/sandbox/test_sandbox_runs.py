"""Runs and what they give back: outcomes, results read as hostile data, crashes of the zygote and of the server."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import INSIDE, QUICK, Server, true_binary

from pipelines.sandbox import Sandbox, SandboxUnavailable, Slot, ZygoteSpec, home
from pipelines.sandbox.elf import with_interpreters


@pytest.mark.parametrize(
    ("how", "code", "kind", "exit_code", "number"),
    [
        ("exit", None, "ok", 0, None),
        ("exit", 0, "ok", 0, None),
        ("exit", 3, "exit", 3, None),
        ("exit", "a message", "exit", 1, None),
        ("_exit", 4, "exit", 4, None),
        ("raise", None, "exit", 1, None),
        ("abort", None, "signal", None, signal.SIGABRT),
        ("segfault", None, "signal", None, signal.SIGSEGV),
        ("memory", None, "memory", 77, None),
        ("raise without stderr", None, "exit", 1, None),
        ("exit from a thread", 5, "exit", 5, None),
    ],
)
def test_outcomes(server: Server, how: str, code: Any, kind: str, exit_code: int | None, number: int | None) -> None:
    with server.sandbox.run("attacks:exits", {"how": how, "code": code}, limits=QUICK) as finished:
        outcome = finished.outcome
        assert (outcome.kind, outcome.exit_code, outcome.signal) == (kind, exit_code, number)
        assert outcome.ok == (kind == "ok")
        stderr = (finished.slot.read("stderr", 1 << 16) or b"").decode()
        if how == "raise":
            assert "Traceback" in stderr
            assert stderr.endswith("ValueError: the user's own mistake\n")
        if how == "abort":
            assert finished.slot.read("buffered", 100) == b"the tail"
        if code == "a message":
            assert stderr == "a message\n"


def test_an_honest_run(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_SECRET", "the server's")
    files = {"kernel.py": b"pass", "deep/er/file": b"x" * 5_000_000}
    with server.sandbox.run("attacks:echo", {"text": "\u2207" * 2_000_000}, files, env={"KEY": "value"}) as finished:
        assert finished.outcome.ok
        assert finished.slot.read("stdout", 100) == b"to stdout\n"
        assert finished.slot.read("stderr", 100) == b"to stderr\n"
        report = json.loads(finished.slot.read("result.json", 1 << 25) or b"")
        assert report["request"]["text"] == "\u2207" * 2_000_000
        assert report["files"] == ["deep", "kernel.py", "stderr", "stdout"]
        slot = str(finished.slot.path)
        kept = {"HOME": slot, "TMPDIR": slot, "KEY": "value", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        assert report["environment"] == kept
    assert not finished.slot.path.exists()


def test_files_cannot_be_written_outside_the_slot(server: Server) -> None:
    for name in ("../escaped", "/tmp/escaped", "a/../../escaped"):
        with (
            pytest.raises(ValueError, match="not a path inside"),
            server.sandbox.run("attacks:nothing", {}, {name: b""}),
        ):
            pytest.fail("it ran")


def test_only_functions_of_the_preload_module_can_be_called(server: Server) -> None:
    with pytest.raises(SandboxUnavailable, match="os:system"), server.sandbox.run("os:system", {}):
        pytest.fail("it ran")
    server.check_next_run()


def test_forged_results_are_read_safely(server: Server, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")

    def plant(slot: Slot) -> None:
        """What a child cannot make, made for it."""
        if slot.read("hanging", 100) and not (slot.path / "fifo").exists():
            os.mkfifo(slot.path / "fifo")
            (slot.path / "link").symlink_to(secret)
            (slot.path / "shadow").symlink_to("/etc/shadow")
            (slot.path / "above").symlink_to(tmp_path)
            os.link(secret, slot.path / "hard") if secret.stat().st_dev == slot.path.stat().st_dev else None

    limits = QUICK.__class__(wall_s=0.3)
    with server.sandbox.run("attacks:hang", {"sleep": True}, limits=limits, poll=plant) as finished:
        slot = finished.slot
        assert (slot.path / "fifo").exists()
        for name in ("fifo", "link", "shadow", "above/secret", "missing", "missing/file", "hanging/file"):
            assert slot.read(name, 100) is None, name
        for name in ("../loupe.db", "/etc/passwd", ""):
            with pytest.raises(ValueError, match="not a path inside"):
                slot.read(name, 100)
    assert secret.read_text() == "secret"


def test_results_are_bounded(server: Server) -> None:
    with server.sandbox.run("attacks:forge", {"size": QUICK.file}, limits=QUICK) as finished:
        slot = finished.slot
        assert slot.read("small", 5) == b"small"
        assert slot.read("small", 4) is None
        assert slot.read("small", 4, cut=True) == b"smal"
        assert slot.read("a/b/ok", 4) == b"fine"
        assert slot.read("huge", 1 << 20) is None
        assert slot.read("huge", 10, cut=True) == bytes(10)
        assert slot.read("directory", 100) is None


def test_a_growing_file_can_be_followed(server: Server) -> None:
    seen: list[bytes] = []

    def follow(slot: Slot) -> None:
        seen.append(slot.read("growing", 1 << 16) or b"")

    with server.sandbox.run("attacks:grow", {}, poll=follow) as finished:
        assert finished.outcome.ok
    assert len(set(seen)) > 3
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(seen))


@pytest.mark.parametrize("error", [KeyError, EOFError, ConnectionError, KeyboardInterrupt])
def test_when_the_poll_raises_the_run_is_killed(server: Server, error: type[BaseException]) -> None:
    pids: list[int] = []

    def fail(slot: Slot) -> None:
        if pid := slot.read("hanging", 100):
            pids.append(int(pid))
            raise error("a mistake of the caller")

    with pytest.raises(error, match="a mistake of the caller"), server.sandbox.run("attacks:hang", {}, poll=fail):
        pytest.fail("it ended")
    assert gone(pids)
    server.check_next_run()


def test_runs_at_once(server: Server) -> None:
    results: dict[int, Any] = {}
    active: set[int] = set()
    together: list[int] = []

    def run(number: int) -> None:
        def look(_: Slot) -> None:
            active.add(number)
            together.append(len(active))

        with server.sandbox.run("attacks:slow_echo", {"n": number, "s": 0.3}, poll=look) as finished:
            active.discard(number)
            results[number] = (finished.outcome.kind, json.loads(finished.slot.read("result.json", 100) or b""))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: ("ok", number) for number in range(10)}
    assert max(together) > 1


def test_a_zygote_that_dies_between_runs_is_replaced(make_server: Callable[..., Server], spec: ZygoteSpec) -> None:
    server = make_server(spec)
    server.check_next_run()
    first = server.sandbox.zygote_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    server.check_next_run()
    assert server.sandbox.zygote_pid not in (None, first)


def test_a_zygote_that_dies_during_a_run_takes_it_along(make_server: Callable[..., Server], spec: ZygoteSpec) -> None:
    server = make_server(spec)
    pids: list[int] = []

    def murder(slot: Slot) -> None:
        if pid := slot.read("hanging", 100):
            pids.append(int(pid))
            os.kill(server.sandbox.zygote_pid or 0, signal.SIGKILL)

    with pytest.raises(SandboxUnavailable, match="zygote ended"), server.sandbox.run("attacks:hang", {}, poll=murder):
        pytest.fail("it ended")
    assert gone(pids)
    server.check_next_run()


SERVER = """
import sys
from pathlib import Path
from pipelines.sandbox import Sandbox, ZygoteSpec

def look(slot):
    if pid := slot.read("hanging", 100):
        print(int(pid), sandbox.zygote_pid, flush=True)

spec = ZygoteSpec("attacks", Path(sys.executable), "attacks", path=(Path(sys.argv[1]),))
sandbox = Sandbox(spec, Path(sys.argv[2]))
with sandbox.run("attacks:hang", {"stubborn": True}, poll=look):
    pass
"""


@pytest.mark.parametrize("also_the_zygote", [False, True])
def test_when_the_server_dies_nothing_stays(tmp_path: Path, spec: ZygoteSpec, *, also_the_zygote: bool) -> None:
    command = [sys.executable, "-c", SERVER, str(INSIDE), str(tmp_path / "slots")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        leader, zygote = map(int, process.stdout.readline().split())
        process.kill()
        if also_the_zygote:
            os.kill(zygote, signal.SIGKILL)
    assert gone([leader, zygote])
    if also_the_zygote:
        assert list((tmp_path / "slots").iterdir()) != []
        with Sandbox(spec, tmp_path / "slots") as next_one, next_one.run("attacks:nothing", {}) as finished:
            left = [path for path in (tmp_path / "slots").iterdir() if path != finished.slot.path.parent]
            assert left == []
    else:
        assert eventually(lambda: list((tmp_path / "slots").iterdir()) == [])


def gone(pids: list[int]) -> bool:
    assert pids
    return eventually(lambda: not any(Path(f"/proc/{pid}/maps").exists() and running(pid) for pid in pids))


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def eventually(condition: Callable[[], bool], within_s: float = 5.0) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_closing_leaves_nothing(tmp_path: Path, spec: ZygoteSpec) -> None:
    sandbox = Sandbox(spec, tmp_path / "slots")
    with sandbox.run("attacks:nothing", {}) as finished:
        assert finished.outcome.ok
    zygote = sandbox.zygote_pid
    assert zygote is not None
    sandbox.close()
    assert gone([zygote])
    assert list((tmp_path / "slots").iterdir()) == []
    sandbox.close()


def test_closing_ends_what_runs(make_server: Callable[..., Server], spec: ZygoteSpec) -> None:
    server = make_server(spec)
    pids: list[int] = []

    def look(slot: Slot) -> None:
        if (pid := slot.read("hanging", 100)) and not pids:
            pids.append(int(pid))
            threading.Thread(target=server.sandbox.close).start()

    with pytest.raises(SandboxUnavailable, match="zygote ended"), server.sandbox.run("attacks:hang", {}, poll=look):
        pytest.fail("it ended")
    assert gone(pids)
    assert eventually(lambda: list((server.directory / "slots").iterdir()) == [])
    server.check_next_run()


def test_a_forked_copy_of_the_server_starts_its_own_zygote(server: Server) -> None:
    server.check_next_run()
    before = server.sandbox.zygote_pid
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            server.check_next_run()
            code = 0 if server.sandbox.zygote_pid not in (None, before) else 2
            server.sandbox.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert server.sandbox.zygote_pid == before
    server.check_next_run()


def test_a_living_sandbox_is_not_swept(server: Server) -> None:
    """Another process that uses the same directory leaves it alone."""
    server.check_next_run()
    before = sorted(server.sandbox.home.iterdir())
    other = home.Home(server.sandbox.home.parent)
    assert sorted(server.sandbox.home.iterdir()) == before
    other.close()
    server.check_next_run()


def test_a_preload_that_fails_says_why(tmp_path: Path) -> None:
    spec = ZygoteSpec("broken", Path(sys.executable), "broken", path=(INSIDE,))
    with Sandbox(spec, tmp_path) as sandbox, pytest.raises(SandboxUnavailable, match="the compiler is not installed"):
        sandbox.start()


def test_a_preload_with_threads_is_refused(tmp_path: Path) -> None:
    spec = ZygoteSpec("threaded", Path(sys.executable), "threaded", path=(INSIDE,))
    with Sandbox(spec, tmp_path) as sandbox, pytest.raises(SandboxUnavailable, match="2 threads"):
        sandbox.start()


def test_interpreters_are_found() -> None:
    found = with_interpreters([true_binary(), Path(__file__)])
    assert found[:2] == [true_binary(), Path(__file__)]
    assert len(found) == 3
    assert found[2].name.startswith("ld")
