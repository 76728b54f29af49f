"""A sandbox whose zygote preloads the attacks, and what stands for the server's own files around it."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyseccomp
import pytest

from pipelines.sandbox import Limits, Sandbox, ZygoteSpec
from pipelines.sandbox.syscalls import REFUSED

INSIDE = Path(__file__).parent / "inside"
QUICK = Limits(wall_s=20, cpu_s=20, memory=1 << 30, file=16 << 20, disk=64 << 20, files=2_000, processes=16)


@dataclass(frozen=True)
class Server:
    """What the child must not reach: the server's directory with its database."""

    directory: Path
    database: Path
    sandbox: Sandbox

    def attack(self, name: str, /, limits: Limits = QUICK, **request: Any) -> dict[str, str | None]:
        """Run one of the attacks; what it reports, once another run has been seen to work."""
        with self.sandbox.run(f"attacks:{name}", request, limits=limits) as finished:
            report = finished.slot.read("result.json", 1 << 20)
            assert report is not None, (finished.outcome, finished.slot.read("stderr", 1 << 16))
        self.check_next_run()
        return json.loads(report)

    def check_next_run(self) -> None:
        """An honest run works, whatever was tried before."""
        with self.sandbox.run("attacks:echo", {"n": 1}, {"input.txt": b"x"}, limits=QUICK) as finished:
            assert finished.outcome.ok, (finished.outcome, finished.slot.read("stderr", 1 << 16))
            report = json.loads(finished.slot.read("result.json", 1 << 20) or b"null")
        assert report["request"] == {"n": 1}
        assert report["files"] == ["input.txt", "stderr", "stdout"]
        assert self.database.read_bytes() == b"the server's own"


def true_binary() -> Path:
    found = shutil.which("true")
    assert found is not None
    return Path(found).resolve()


def call_numbers() -> dict[str, int]:
    """The numbers of all refused system calls here, and of those that are allowed in part."""
    names = (*REFUSED, "clone", "clone3", "close_range")
    numbers = {name: pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) for name in names}
    return {name: number for name, number in numbers.items() if number >= 0}


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


@pytest.fixture(scope="session")
def spec() -> ZygoteSpec:
    return ZygoteSpec("attacks", Path(sys.executable), "attacks", path=(INSIDE,), executables=(true_binary(),))


@pytest.fixture(scope="session")
def make_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Make a server with a sandbox of its own, closed at the end of the session."""
    made: list[Sandbox] = []

    def make(spec: ZygoteSpec, directory: Path | None = None, **options: Any) -> Server:
        directory = directory or tmp_path_factory.mktemp("server")
        database = directory / "loupe.db"
        database.write_bytes(b"the server's own")
        sandbox = Sandbox(spec, directory / "slots", **options)
        made.append(sandbox)
        return Server(directory, database, sandbox)

    yield make
    for sandbox in made:
        sandbox.close()


@pytest.fixture(scope="session")
def server(make_server: Callable[..., Server], spec: ZygoteSpec) -> Server:
    return make_server(spec)
