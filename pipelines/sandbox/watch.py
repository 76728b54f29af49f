"""Watch one run from outside: its end, its wall clock, its directory, its memory."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable

from pipelines.sandbox import tree, wire
from pipelines.sandbox.model import EXIT_MEMORY, Limits, Outcome, OutcomeKind, SandboxUnavailable
from pipelines.sandbox.slot import Slot

_TICK_S = 0.025
_GRACE_S = 0.5


class Watcher:
    """One run, from its request to the moment when no process of it is left."""

    def __init__(
        self,
        connection: socket.socket,
        slot: Slot,
        limits: Limits,
        began: float,
        poll: Callable[[Slot], None] | None,
    ) -> None:
        self.lines = wire.Lines(connection)
        self.connection = connection
        self.slot = slot
        self.limits = limits
        self.began = began
        self.poll = poll
        self.broken: OutcomeKind | None = None
        self.kill_at = 0.0
        self.refused: wire.Message | None = None

    def watch(self) -> Outcome:
        """Wait for the end; kill at a limit.

        Raises:
            SandboxUnavailable: the child could not be confined, or the zygote died twice.
        """
        ready = select.poll()
        ready.register(self.connection, select.POLLIN)
        while True:
            if ready.poll(_TICK_S * 1000):
                for message in self.lines.receive():
                    if "refused" in message:
                        self.refused = message
                    elif "status" in message:
                        return self._outcome(message["status"], message["cpu_s"])
            else:
                self._tick()

    def _tick(self) -> None:
        now = time.monotonic()
        if self.broken is not None:
            if now >= self.kill_at:
                self.connection.send(b"k")
            return
        if self.poll is not None:
            self.poll(self.slot)
        if now - self.began > self.limits.wall_s:
            self._stop("timeout", now, politely=True)
            return
        try:
            size = tree.measure(self.slot.descriptor, self.limits.files)
        except tree.TreeRefused:
            self._stop("disk", now)
        else:
            if size > self.limits.disk:
                self._stop("disk", now)

    def _stop(self, kind: OutcomeKind, now: float, *, politely: bool = False) -> None:
        self.broken = kind
        self.kill_at = now + (_GRACE_S if politely else 0)
        self.connection.send(b"t" if politely else b"k")

    def _outcome(self, status: int, cpu_s: float) -> Outcome:
        if self.refused is not None:
            raise SandboxUnavailable(
                f"the child could not be confined: {self.refused['refused']}\n{self.refused['traceback']}"
            )
        code = os.waitstatus_to_exitcode(status)
        number: int | None = -code if code < 0 else None
        exit_code = code if code >= 0 else None
        kind: OutcomeKind = "ok" if code == 0 else "exit" if number is None else "signal"
        if code == signal.SIGABRT:
            kind, number, exit_code = "signal", signal.SIGABRT, None
        if code in (signal.SIGXCPU, -signal.SIGXCPU):
            kind = "timeout"
        elif code == EXIT_MEMORY:
            kind = "memory"
        if self.broken is not None:
            kind = self.broken
        return Outcome(kind, exit_code, number, time.monotonic() - self.began, cpu_s)
