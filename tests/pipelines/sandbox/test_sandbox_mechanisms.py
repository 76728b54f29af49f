"""Each way of bounding processes, for root and for an ordinary user, and machines that cannot confine."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyseccomp
import pytest

import pipelines
from pipelines.sandbox import SandboxUnavailable, ZygoteSpec, bounds, cgroups, landlock, plan, probe, seccomp
from pipelines.sandbox.cgroups import Groups, hierarchies
from tests.pipelines.sandbox.conftest import INSIDE, QUICK, Server, call_numbers

NOBODY = 65534
ROOT = os.geteuid() == 0
UNNEEDED = ("site-packages", "test", "idlelib", "lib2to3", "tkinter", "ensurepip", "config-*", "turtledemo", "*.a")


@dataclasses.dataclass(frozen=True)
class World:
    """A Python with this package, readable by anybody: the one that runs the tests may lie in a closed home."""

    directory: Path
    python: Path
    inside: Path


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="loupe-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        paths = sysconfig.get_paths()
        library = f"python{sysconfig.get_python_version()}"
        shutil.copytree(paths["stdlib"], directory / "lib" / library, ignore=shutil.ignore_patterns(*UNNEEDED))
        for shared in Path(sysconfig.get_config_var("LIBDIR")).glob("libpython*.so*"):
            shutil.copy2(shared, directory / "lib")
        (directory / "bin").mkdir()
        shutil.copy2(os.path.realpath(sys.executable), directory / "bin" / library)
        python = directory / "bin" / "python"
        python.write_text(
            f'#!/bin/sh\nLD_LIBRARY_PATH={directory}/lib PYTHONHOME={directory} exec {directory}/bin/{library} "$@"\n'
        )
        python.chmod(0o755)
        packages = directory / "packages"
        shutil.copytree(Path(pipelines.__path__[0]) / "sandbox", packages / "pipelines" / "sandbox")
        shutil.copy2(pipelines.__file__ or "", packages / "pipelines")
        shutil.copy2(pyseccomp.__file__, packages)
        shutil.copytree(INSIDE, directory / "inside")
        yield World(directory, python, directory / "inside")


ORDINARY = """
import dataclasses, json, sys
from pathlib import Path
from pipelines.sandbox import Limits, Sandbox, ZygoteSpec

python, inside, slots = map(Path, sys.argv[1:])
limits = Limits(**json.loads(sys.stdin.read()))
sandbox = Sandbox(ZygoteSpec("ordinary", python, "attacks", path=(inside,)), slots, limits=limits)
sandbox.start()
found = {"processes": sandbox.confinement.processes}
for name, request in {
    "fork_bomb": {}, "thread_bomb": {}, "orphans": {}, "hostile_tree": {"files": 100, "depth": 300},
    "allocate_in_many": {"processes": 8, "size": 200 << 20, "shared": False}, "fill": {"how": "unlinked"},
    "headless_memory": {"processes": 4, "size": 300 << 20}, "fill_mapped": {"how": "unlinked and mapped"},
}.items():
    with sandbox.run(f"attacks:{name.partition('_mapped')[0]}", request) as finished:
        found[name] = finished.outcome.kind
    with sandbox.run("attacks:echo", {}) as finished:
        assert finished.outcome.ok, finished.outcome
with sandbox.run("attacks:read_outside", {"server": 1, "paths": [str(slots)]}) as finished:
    found["read"] = json.loads(finished.slot.read("result.json", 1 << 20))
sandbox.close()
print(json.dumps(found))
"""

EXPECTED = {
    "fork_bomb": "processes",
    "thread_bomb": "processes",
    "orphans": "ok",
    "hostile_tree": "disk",
    "allocate_in_many": "memory",
    "fill": "disk",
    "headless_memory": "memory",
    "fill_mapped": "disk",
}
LIMITS = dataclasses.replace(QUICK, memory=1200 << 20)


def test_an_ordinary_user(world: World) -> None:
    """The whole sandbox as another user: what root runs here, and what a desktop runs."""
    with tempfile.TemporaryDirectory(dir="/tmp") as slots:
        os.chown(slots, NOBODY if ROOT else -1, -1)
        limits = json.dumps(dataclasses.asdict(dataclasses.replace(LIMITS, memory=800 << 20)))
        ran = subprocess.run(
            [world.python, "-c", ORDINARY, world.python, world.inside, slots],
            input=limits, capture_output=True, text=True, check=False, cwd="/",
            env={"PYTHONPATH": str(world.directory / "packages")},
            **({"user": NOBODY, "group": NOBODY, "extra_groups": []} if ROOT else {}),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert list(Path(slots).iterdir()) == []
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found.pop("processes") in ("RLIMIT_NPROC of an ordinary user", "pids cgroup v2")
    assert {name for name, error in found.pop("read").items() if error is None} == set()
    assert found == EXPECTED


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Leave a machine one mechanism."""

    def leave(*makers: Callable[[str], bounds.Bound]) -> None:
        kept = tuple((name, make) for name, make in plan.MECHANISMS if make in makers)
        monkeypatch.setattr(plan, "MECHANISMS", kept)

    return leave


def test_a_uid_for_each_slot(world: World, only: Callable[..., None], make_server: Callable[..., Server]) -> None:
    """What root falls back to without control groups; an ordinary user is told that it needs root."""
    only(bounds.ByUid)
    spec = ZygoteSpec("uids", world.python, "attacks", path=(world.inside,))
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        server = make_server(spec, Path(name))
        if not ROOT:
            with pytest.raises(SandboxUnavailable, match="only root can give each slot a uid"):
                server.sandbox.start()
            return
        server.sandbox.start()
        assert server.sandbox.confinement.processes == "uid per slot"
        server.check_next_run()
        for function, request in (
            ("fork_bomb", {}),
            ("allocate_in_many", {"processes": 8, "size": 200 << 20, "shared": True}),
        ):
            with server.sandbox.run(f"attacks:{function}", request, limits=LIMITS) as finished:
                assert finished.outcome.kind == EXPECTED[function]
            server.check_next_run()
        report = server.attack("privileges", numbers=call_numbers())
        assert {name for name, error in report.items() if error is None} == set()
        server.sandbox.close()


def test_a_uid_that_cannot_read_python_is_not_chosen(
    only: Callable[..., None], spec: ZygoteSpec, tmp_path: Path, make_server: Callable[..., Server]
) -> None:
    only(bounds.ByUid)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = make_server(dataclasses.replace(spec, read_only=(closed,)))
    with pytest.raises(SandboxUnavailable, match="a uid per slot: ") as caught:
        server.sandbox.start()
    assert "--trust-code" in str(caught.value)


def test_groups_are_named_and_removed(
    make_server: Callable[..., Server], spec: ZygoteSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where control groups can be made they are used; where not, that is said."""
    if not any("pids" in hierarchy.controllers for hierarchy in hierarchies()):
        with pytest.raises(OSError, match="no pids controller"):
            Groups("test")
        return
    server = make_server(spec)
    assert server.sandbox.confinement.processes.startswith("pids cgroup v")
    token = server.sandbox.home.name.partition("-")[2]
    made = [hierarchy.directory / f"loupe-{token}" for hierarchy in hierarchies()]
    assert any(path.is_dir() for path in made)

    monkeypatch.setattr(cgroups, "_SETTLED_S", -1)
    stale = hierarchies()[0].directory / f"loupe-stale-{os.getpid()}" / "slot-1"
    stale.mkdir(parents=True)
    Groups(f"other-{os.getpid()}").close()
    assert not stale.parent.exists()
    server.check_next_run()

    server.sandbox.close()
    assert not any(path.exists() for path in made)


def test_a_mechanism_that_does_not_bound_is_refused(
    spec: ZygoteSpec, make_server: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MECHANISMS", (("nothing", lambda _: bounds.Unbounded()),))
    server = make_server(spec)
    with pytest.raises(SandboxUnavailable, match="nothing: it does not bound processes"):
        server.sandbox.start()


@pytest.mark.parametrize("abi", [0, 1])
def test_without_landlock_nothing_runs_unless_code_is_trusted(
    abi: int, make_server: Callable[..., Server], spec: ZygoteSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: abi)
    with pytest.raises(SandboxUnavailable, match="--trust-code") as caught:
        make_server(spec).sandbox.start()
    assert "Landlock" in str(caught.value)
    server = make_server(spec, trust_code=True)
    server.check_next_run()
    confinement = server.sandbox.confinement
    assert confinement.trusted
    assert confinement.describe()["files"] == "not confined"
    assert confinement.seccomp
    with server.sandbox.run("attacks:fork_bomb", {}, limits=QUICK) as finished:
        assert finished.outcome.kind == "processes"
    server.check_next_run()


def test_without_libseccomp_nothing_runs_unless_code_is_trusted(
    make_server: Callable[..., Server], spec: ZygoteSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    with pytest.raises(SandboxUnavailable, match="install libseccomp2"):
        make_server(spec).sandbox.start()
    server = make_server(spec, trust_code=True)
    server.check_next_run()
    assert server.sandbox.confinement.describe()["system calls"] == "not confined"


def test_what_the_probe_finds_missing_is_named(
    make_server: Callable[..., Server], spec: ZygoteSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seccomp, "ALLOWED", (*seccomp.ALLOWED, "socket"))
    monkeypatch.setattr(seccomp, "REFUSED", tuple(name for name in seccomp.REFUSED if name != "socket"))
    with pytest.raises(SandboxUnavailable, match="making a socket is possible"):
        make_server(spec).sandbox.start()
    assert probe.FUNCTION == "pipelines.sandbox.probe:probe"


def test_a_version_2_group_is_made_where_controllers_are_delegated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This reads a tree of files: whether groups in it bound anything is for the trial in a child to find."""
    own = tmp_path / "user.slice" / "app.slice" / "terminal.scope"
    own.mkdir(parents=True)
    for directory, enabled in ((own, ""), (own.parent, "memory pids\n"), (own.parents[1], "cpu memory pids\n")):
        (directory / "cgroup.subtree_control").write_text(enabled)
    monkeypatch.setattr(cgroups, "_mounts", lambda: [("/", tmp_path, "cgroup2", {"rw"})])
    monkeypatch.setattr(cgroups, "_own_groups", lambda: [("", "/user.slice/app.slice/terminal.scope")])
    assert hierarchies() == [cgroups.Hierarchy(own.parent, 2, frozenset({"memory", "pids"}))]
    monkeypatch.setattr(cgroups, "_mounts", lambda: [("/user.slice/app.slice", tmp_path, "cgroup2", {"rw"})])
    assert hierarchies() == []


def test_expecting_a_run_moves_nobody(server: Server) -> None:
    before = Path("/proc/self/cgroup").read_text()
    server.sandbox.start()
    for _ in range(3):
        server.sandbox.expect()
        server.check_next_run()
    assert Path("/proc/self/cgroup").read_text() == before


def test_a_machine_that_bounds_lower_already_is_no_obstacle() -> None:
    """The limit is lowered in a process of its own, since it could not be raised again."""
    code = (
        "import resource; from pipelines.sandbox import privileges\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "privileges.limit(cpu_s=60, memory=6 << 30, file=1 << 20, open_files=256, processes=None)\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CPU))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(64, 64) (60, 61)\n"
