"""Watch one run from outside: its end, its wall clock, its directory, its memory, its processes."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable

from pipelines.sandbox import procfs, tree, wire
from pipelines.sandbox.bounds import Grant
from pipelines.sandbox.model import EXIT_MEMORY, Limits, Outcome, OutcomeKind, SandboxUnavailable
from pipelines.sandbox.slot import Slot

_TICK_S = 0.01
_LOOK_S = 0.05
_LOOK_SHARE = 8
"""A look that takes long is followed by a pause of this many times as long."""
_GRACE_S = 0.5


class Watcher:
    """One run, from its request to the moment when no process of it is left."""

    def __init__(
        self,
        connection: socket.socket,
        slot: Slot,
        limits: Limits,
        grant: Grant,
        poll: Callable[[Slot], None] | None,
    ) -> None:
        self._lines = wire.Lines(connection)
        self._connection = connection
        self._slot = slot
        self._limits = limits
        self._group = grant.group
        self._poll = poll
        self._leader: int | None = None
        self._refused: wire.Message | None = None
        self._ended: wire.Message | None = None
        self._met: OutcomeKind | None = None
        self._failure: Exception | None = None
        self._kill_at: float | None = None
        self._look_at = 0.0

    def watch(self, began: float) -> Outcome:
        """Wait until nothing of the run is left; kill it at a limit. ``began`` is on the monotonic clock.

        Raises:
            ConnectionError: the zygote has ended before it told of a child.
            Exception: what ``poll`` raised, once the run has been killed.
            SandboxUnavailable: it has ended since, or the child could not be confined.
        """
        try:
            while not self._hear(_TICK_S):
                self._tick(time.monotonic(), began)
        except (EOFError, ConnectionError) as error:
            if self._leader is None:
                raise ConnectionError from error
            self._bury(self._leader)
            raise SandboxUnavailable("the zygote ended during the run; the next run starts another") from error
        except BaseException:  # also a signal in the caller must not leave the run alive; it is raised again
            self._abandon()
            raise
        if self._failure is not None:
            raise self._failure
        if self._refused is not None:
            raise SandboxUnavailable(
                f"the child could not be confined: {self._refused['refused']}\n{self._refused['traceback']}"
            )
        return self._outcome(time.monotonic() - began)

    def _hear(self, timeout_s: float) -> bool:
        """Wait for what the zygote tells; whether the run is over."""
        ready = select.poll()
        ready.register(self._connection, select.POLLIN)
        if ready.poll(timeout_s * 1000):
            for message in self._lines.receive():
                if "pid" in message:
                    self._leader = message["pid"]
                elif "refused" in message:
                    self._refused = message
                else:
                    self._ended = message
        return self._ended is not None

    def _tick(self, now: float, began: float) -> None:
        if self._kill_at is not None:
            if now >= self._kill_at:
                self._connection.send(b"k")
            return
        try:
            if self._poll is not None:
                self._poll(self._slot)
        except Exception as error:  # the caller's own; it is raised again once the run is killed
            self._failure = error
            self._kill_at = now
            return
        if now - began > self._limits.wall_s:
            self._met = "timeout"
            self._kill_at = now + _GRACE_S
            self._connection.send(b"t")
        elif now >= self._look_at and self._leader is not None:
            self._met = self._exceeded(self._leader)
            looked = time.monotonic()
            self._look_at = looked + max(_LOOK_S, (looked - now) * _LOOK_SHARE)
            if self._met is not None:
                self._kill_at = looked
                self._connection.send(b"k")

    def _exceeded(self, leader: int) -> OutcomeKind | None:
        """The limit that what runs now is above."""
        limits = self._limits
        if self._group is not None:
            pids = self._group.pids()
            if self._group.refused_processes():
                return "processes"
            if self._group.out_of_memory():
                return "memory"
        else:
            pids = procfs.group_members(leader)
            if procfs.tasks(pids) > limits.processes:
                return "processes"
        if (self._group is None or not self._group.bounds_memory) and (
            procfs.resident(pids, limits.memory) > limits.memory
        ):
            return "memory"
        return self._disk_exceeded(procfs.unlinked(pids, self._slot.path, limits.file))

    def _disk_exceeded(self, unlinked: int) -> OutcomeKind | None:
        try:
            size = tree.measure(self._slot.descriptor, self._limits.files)
        except tree.TreeRefused:
            return "disk"
        return "disk" if size + unlinked > self._limits.disk else None

    def _outcome(self, wall_s: float) -> Outcome:
        assert self._ended is not None  # noqa: S101 - watch returns only then
        code = os.waitstatus_to_exitcode(self._ended["status"])
        exit_code, number = (code, None) if code >= 0 else (None, -code)
        if code == signal.SIGABRT:
            exit_code, number = None, int(signal.SIGABRT)  # an abort leaves through exit, to flush
        kind = self._met or self._exceeded_at_end() or _kind(exit_code, number)
        return Outcome(kind, exit_code, number, wall_s, self._ended["cpu_s"])

    def _exceeded_at_end(self) -> OutcomeKind | None:
        """A limit that was met between two looks."""
        if self._group is not None and self._group.refused_processes():
            return "processes"
        if self._group is not None and self._group.out_of_memory():
            return "memory"
        return self._disk_exceeded(0)

    def _abandon(self) -> None:
        """Kill the run and wait until nothing is left of it."""
        with contextlib.suppress(EOFError, OSError):
            while self._ended is None:
                self._connection.send(b"k")
                self._hear(_TICK_S)
            return
        if self._leader is not None:
            self._bury(self._leader)

    def _bury(self, leader: int) -> None:
        """Kill what a dead zygote left; the leader has died with it."""
        while self._group is None and procfs.group_members(leader):  # else leaving the grant empties the group
            with contextlib.suppress(ProcessLookupError):
                os.killpg(leader, signal.SIGKILL)
            time.sleep(0.001)


def _kind(exit_code: int | None, number: int | None) -> OutcomeKind:
    ended_by = number or exit_code
    if ended_by == signal.SIGXCPU:
        return "timeout"
    if ended_by == signal.SIGXFSZ:
        return "disk"
    if exit_code == EXIT_MEMORY:
        return "memory"
    if number is not None:
        return "signal"
    return "exit" if exit_code else "ok"
