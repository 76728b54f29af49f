"""Small things about processes."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

PARENT = "LOUPE_SUPERVISOR"

_PR_SET_PDEATHSIG = 1
_NICE = 10


class Interrupted(KeyboardInterrupt):
    """A signal asked this process to end."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


class Signals:
    """SIGINT and SIGTERM raise Interrupted, but only where ``interruptible`` says so: nothing half done is torn apart.

    A signal that comes elsewhere is raised at the next such place; all that follow are ignored.
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._open = False

    @contextmanager
    def caught(self) -> Iterator[Signals]:
        """Catch both signals until the context is left; only the main thread may."""
        before = {signum: signal.signal(signum, self._catch) for signum in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a signal end what is done here, also one that came before."""
        if self._received is not None:
            raise Interrupted(self._received)
        self._open = True
        try:
            yield
        finally:
            self._open = False

    def _catch(self, signum: int, _frame: FrameType | None) -> None:
        self._received = self._received or signum
        if self._open:
            self._open = False
            raise Interrupted(self._received)


@contextmanager
def owner_only() -> Iterator[None]:
    """Make files that only their owner can read; the mask is the whole process's."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def be_nice() -> None:
    """Let this thread run only when nothing urgent wants the processor; Linux knows a niceness for each thread."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def die_with_parent() -> None:
    """Get SIGTERM when the supervisor named in the environment ends, even if it was killed."""
    parent = os.environ.pop(PARENT, None)
    if parent is None:
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGTERM)


def identity(pid: int) -> str | None:
    """Return what tells a process from all others of this machine, or None where it has ended.

    That is the boot and the clock ticks from it to the process's start. The start by the wall clock would not do: it
    moves whenever the clock is set.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    # A name may hold spaces and parentheses, so count from its end: field 3 is the state, 22 the start.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{boot}:{fields[19]}"
