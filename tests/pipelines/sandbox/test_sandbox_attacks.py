"""What a child must not reach, tried from inside, with this kernel's Landlock and with what older ones have."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.sandbox import ZygoteSpec, landlock, seccomp
from tests.pipelines.sandbox.conftest import Server, call_numbers, true_binary

ABIS = sorted({landlock.abi(), *(abi for abi in (2, 3, 5) if abi < landlock.abi())})


@pytest.fixture(scope="module", params=ABIS)
def confined(request: pytest.FixtureRequest, make_server: Callable[..., Server], spec: ZygoteSpec) -> Server:
    """A server on a kernel with this Landlock ABI, as far as rules go."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landlock, "abi", lambda: request.param)
        server = make_server(spec)
        server.sandbox.start()
    assert server.sandbox.confinement.landlock == request.param
    assert server.sandbox.confinement.scopes == (request.param >= 6)
    return server


@pytest.fixture
def sibling(confined: Server) -> Iterator[int]:
    """A child of the same sandbox that runs meanwhile."""
    stop = threading.Event()
    found: list[int] = []
    known = threading.Event()

    def look(slot: Any) -> None:
        if (pid := slot.read("hanging", 10)) and not known.is_set():
            found.append(int(pid))
            known.set()
        if stop.is_set():
            raise InterruptedError

    def run() -> None:
        with pytest.raises(InterruptedError), confined.sandbox.run("attacks:hang", {"sleep": True}, poll=look):
            pytest.fail("it ended")

    thread = threading.Thread(target=run)
    thread.start()
    assert known.wait(10)
    os.kill(found[0], 0)
    yield found[0]
    os.kill(found[0], 0)
    stop.set()
    thread.join()


def test_reads_nothing_outside(confined: Server) -> None:
    secret = confined.directory / "slots" / "other"
    secret.mkdir(exist_ok=True)
    project = Path(__file__).parents[3]
    paths = [
        confined.database,
        confined.directory,
        secret,
        Path.home(),
        project / "app",
        project / "pyproject.toml",
        __file__,
    ]
    report = confined.attack("read_outside", server=os.getpid(), paths=[str(path) for path in paths])
    assert len(report) > 40
    assert {name for name, error in report.items() if error not in ("EACCES", "ENOENT")} == set()
    assert report[f"open {confined.database}"] == "EACCES"
    assert report["open /etc/passwd"] == "EACCES"


def test_writes_nothing_outside(confined: Server) -> None:
    readable = Path(os.__file__)
    before = readable.stat()
    report = confined.attack(
        "write_outside",
        database=str(confined.database),
        directory=str(confined.directory),
        readable=str(readable),
        toolchain=str(Path(sysconfig.get_paths()["stdlib"]) / "ast.py"),
    )
    assert report.pop("open truncating to read") == "ENOSYS"
    assert {name for name, error in report.items() if error not in ("EACCES", "EPERM", "EXDEV")} == set()
    after = readable.stat()
    assert (before.st_mode, before.st_size, before.st_mtime_ns, before.st_nlink) == (
        after.st_mode,
        after.st_size,
        after.st_mtime_ns,
        after.st_nlink,
    )
    assert sorted(path.name for path in confined.directory.iterdir()) == ["loupe.db", "slots"]


def test_makes_no_socket(confined: Server) -> None:
    report = confined.attack("sockets")
    for family in ("tcp", "udp", "tcp6", "udp6", "unix", "unix datagram", "netlink", "packet", "vsock", "pair"):
        assert report[family] == "EPERM"
    assert {name for name, error in report.items() if error is None} == set()


def test_signals_traces_and_limits_nobody(confined: Server, sibling: int) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as victim:
        report = confined.attack("signals", server=os.getpid(), victim=victim.pid, sibling=sibling)
        assert victim.poll() is None
        assert resource.prlimit(victim.pid, resource.RLIMIT_CPU) == resource.getrlimit(resource.RLIMIT_CPU)
        victim.kill()
    harmless = {"all"}  # reaches the slot's own processes only, as this test's survival shows
    assert {name for name, error in report.items() if error is None} <= harmless
    assert report["kill victim"] in ("EPERM", "ENOSYS")


def test_has_no_privileges_and_gains_none(confined: Server) -> None:
    report = confined.attack("privileges", numbers=call_numbers())
    assert {name for name, error in report.items() if error is None} == set()
    refused = {name: error for name, error in report.items() if name.startswith("call ")}
    assert len(refused) > 120
    assert set(refused.values()) == {"EPERM"}
    assert report["reserve disk"] == "ENOTSUP"
    assert report["clone3"] == report["a call from the future"] == "ENOSYS"


def test_system_calls_of_another_architecture_end_the_process(confined: Server) -> None:
    with confined.sandbox.run("attacks:other_abi", {}) as finished:
        assert finished.outcome.kind == "signal"
        assert finished.outcome.signal == signal.SIGSYS
    confined.check_next_run()


def test_executes_the_toolchain_only(confined: Server) -> None:
    others = ["/bin/sh", "/usr/bin/env", os.path.realpath("/proc/self/exe"), "/usr/bin/python3"]
    others = [path for path in others if Path(path).exists()]
    report = confined.attack("execute", allowed=str(true_binary()), others=others)
    assert report.pop(str(true_binary())) is None
    assert {name: error for name, error in report.items() if error not in ("EACCES", "EPERM")} == {}
    assert len(report) == len(others) + 3


def test_landlock_alone_stops_network_and_signals(
    make_server: Callable[..., Server], spec: ZygoteSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With socket(2) let through, what the filter hides is seen to hold too: two walls, each tested."""
    monkeypatch.setattr(seccomp, "REFUSED", tuple(name for name in seccomp.REFUSED if name not in _SOCKETS))
    monkeypatch.setattr(seccomp, "ALLOWED", (*seccomp.ALLOWED, *_SOCKETS))
    monkeypatch.setattr("pipelines.sandbox.plan._try", lambda *_: (True, []))  # the probe would rightly object
    server = make_server(spec)
    name = f"loupe-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener, socket.create_server(("127.0.0.1", 0)) as tcp:
        listener.bind(b"\0" + name.encode())
        listener.listen()
        report = server.attack("abstract", name=name, port=tcp.getsockname()[1])
    expected = {"abstract": "EPERM", "tcp": "EACCES", "bind": "EACCES", "parent": "EPERM"}
    assert report == expected


_SOCKETS = ("socket", "connect", "bind")
