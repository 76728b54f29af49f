"""Small things about processes."""

from __future__ import annotations

import ctypes
import os
import signal
import threading

PARENT = "LOUPE_SUPERVISOR"

_PR_SET_PDEATHSIG = 1
_NICE = 10


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
