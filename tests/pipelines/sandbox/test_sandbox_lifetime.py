"""What lives how long: the zygote, the server, what they leave when they die or close."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.sandbox import Sandbox, SandboxUnavailable, Slot, ZygoteSpec, home
from tests.pipelines.sandbox.conftest import INSIDE, Server, eventually, gone


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
    with pytest.raises(SandboxUnavailable, match="closed"), sandbox.run("attacks:nothing", {}):
        pass
    assert sandbox.zygote_pid is None
    assert list((tmp_path / "slots").iterdir()) == []


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
