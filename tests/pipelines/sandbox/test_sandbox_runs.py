"""Runs and what they give back: outcomes, results read as hostile data, several at once."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from pipelines.sandbox import SandboxUnavailable, Slot
from pipelines.sandbox.elf import with_interpreters
from tests.pipelines.sandbox.conftest import QUICK, Server, gone, true_binary


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


def test_interpreters_are_found() -> None:
    found = with_interpreters([true_binary(), Path(__file__)])
    assert found[:2] == [true_binary(), Path(__file__)]
    assert len(found) == 3
    assert found[2].name.startswith("ld")
