"""What a child may use: time, memory, processes, disk. Each limit is met on purpose, by the worst way of meeting it."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from pathlib import Path

import pytest

from pipelines.sandbox import Limits, Outcome, procfs
from tests.pipelines.sandbox.conftest import QUICK, Server


def meet(server: Server, function: str, limits: Limits, **request: object) -> Outcome:
    """Run until the end; nothing of it is left then, and the next run works."""
    groups: set[int] = set()
    before = set(children_of_zygote(server))

    def look(_: object) -> None:
        groups.update(pid for pid in children_of_zygote(server) - before if os.getpgid(pid) == pid)

    with server.sandbox.run(f"attacks:{function}", request, limits=limits, poll=look) as finished:
        assert not any(procfs.group_members(group) for group in groups)
        assert children_of_zygote(server) == before
    server.check_next_run()
    return finished.outcome


def children_of_zygote(server: Server) -> set[int]:
    server.sandbox.start()
    zygote = server.sandbox.zygote_pid
    return {int(pid) for pid in Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()}


def test_an_endless_loop_ends_at_the_wall_clock(server: Server) -> None:
    limits = dataclasses.replace(QUICK, wall_s=0.3)
    outcome = meet(server, "hang", limits)
    assert outcome.kind == "timeout"
    assert 0.3 <= outcome.wall_s < 2
    assert outcome.cpu_s > 0.01


def test_a_timeout_lets_buffers_reach_their_files(server: Server) -> None:
    with server.sandbox.run("attacks:hang", {}, limits=dataclasses.replace(QUICK, wall_s=0.3)) as finished:
        assert finished.outcome.kind == "timeout"
        assert finished.slot.read("buffered", 100) == b"the tail"


def test_a_child_deaf_to_polite_signals_is_killed(server: Server) -> None:
    outcome = meet(server, "hang", dataclasses.replace(QUICK, wall_s=0.2), stubborn=True)
    assert (outcome.kind, outcome.signal) == ("timeout", signal.SIGKILL)
    assert outcome.wall_s < 3


def test_cpu_time_is_bounded_for_each_process(server: Server) -> None:
    outcome = meet(server, "burn", dataclasses.replace(QUICK, cpu_s=1))
    assert outcome.kind == "timeout"
    assert 0.5 < outcome.cpu_s < 2.5


def test_a_fork_bomb(server: Server) -> None:
    began = time.monotonic()
    assert meet(server, "fork_bomb", QUICK).kind == "processes"
    assert time.monotonic() - began < 5


def test_a_thread_bomb(server: Server) -> None:
    assert meet(server, "thread_bomb", QUICK).kind == "processes"


def test_orphans_do_not_outlive_the_run(server: Server) -> None:
    assert meet(server, "orphans", QUICK).kind == "ok"


def test_50_gb_at_once(server: Server) -> None:
    outcome = meet(server, "allocate_memory", dataclasses.replace(QUICK, memory=6 << 30), size=50 << 30)
    assert outcome.kind == "memory"


@pytest.mark.parametrize("shared", [False, True])
def test_memory_of_many_processes_together(server: Server, *, shared: bool) -> None:
    limits = dataclasses.replace(QUICK, memory=256 << 20)
    outcome = meet(server, "allocate_in_many", limits, processes=8, size=100 << 20, shared=shared)
    assert outcome.kind == "memory"


@pytest.mark.parametrize("how", ["one file", "stderr", "many files", "empty files", "directories", "unlinked"])
def test_disk(server: Server, how: str) -> None:
    outcome = meet(server, "fill", QUICK, how=how)
    assert outcome.kind == "disk"
    assert outcome.wall_s < 10


def test_disk_that_only_a_mapping_holds(server: Server) -> None:
    assert meet(server, "fill", QUICK, how="unlinked and mapped").kind == "disk"


def test_a_sparse_file_is_charged_what_it_occupies(server: Server) -> None:
    assert meet(server, "sparse", QUICK, size=QUICK.file).kind == "ok"


def test_what_was_written_between_two_looks_counts(server: Server) -> None:
    """The child is gone before anyone looks."""
    limits = dataclasses.replace(QUICK, disk=1 << 20)
    with server.sandbox.run("attacks:write_and_end", {"size": 4 << 20}, limits=limits) as finished:
        assert finished.outcome.kind == "disk"
    server.check_next_run()


def test_deleting_everything(server: Server) -> None:
    assert meet(server, "delete_everything", QUICK).kind in ("ok", "exit")


def test_closing_every_descriptor(server: Server) -> None:
    with server.sandbox.run("attacks:close_everything", {}, limits=QUICK) as finished:
        assert finished.outcome.kind in ("ok", "exit")
        assert finished.slot.read("still", 10) == b"alive"
    server.check_next_run()


def test_a_hostile_tree_is_removed(server: Server) -> None:
    limits = dataclasses.replace(QUICK, files=1_000_000, disk=8 << 30, processes=16)
    with server.sandbox.run("attacks:hostile_tree", {"files": 500, "depth": 300}, limits=limits) as finished:
        path = finished.slot.path
        assert finished.outcome.kind == "disk"
    assert not path.exists()
    server.check_next_run()
