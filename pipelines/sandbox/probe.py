"""Tried in a confined child when a sandbox starts: what is promised must hold on this machine."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipelines.sandbox.privileges import capabilities

REPORT = "probe.json"
FORKS = "forks.json"
FUNCTION = f"{__name__}:probe"


def probe(request: Any) -> None:
    """Write what did not hold to one file, then what was counted to another: it may not live to write that."""
    failures = []
    for what, attempt in _forbidden(Path(request["outside"])).items():
        try:
            attempt()
        except PermissionError:
            continue
        except OSError as error:
            failures.append(f"{what} failed otherwise than by permission: {error}")
        else:
            failures.append(f"{what} is possible")
    for path in request["readable"]:
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError as error:
            failures.append(f"{path} cannot be read: {error.strerror}")
    if any(capabilities()):
        failures.append("capabilities are left")
    Path(REPORT).write_text(json.dumps(failures))
    counted = _count_tasks() if request["count"] else _forks(request["forks"])
    Path(FORKS).write_text(json.dumps(counted))


def _forbidden(outside: Path) -> dict[str, Callable[[], Any]]:
    return {
        "reading outside the slot": lambda: (outside / "zygote.log").read_bytes(),
        "writing outside the slot": lambda: (outside / "escaped").write_bytes(b""),
        "making a socket": lambda: socket.socket(socket.AF_UNIX),
        "signalling the parent": lambda: os.kill(os.getppid(), 0),
        "changing the process group": lambda: os.setpgid(0, 0),
        "executing a file": lambda: os.execv("/bin/sh", ["sh", "-c", "true"]),  # noqa: S606 - it must fail
    }


def _forks(most: int) -> int:
    """Fork until the kernel refuses; the number of children, at most ``most``."""
    for made in range(most):
        if not _try_fork(keep=True):
            return made
    return most


def _try_fork(*, keep: bool) -> bool:
    try:
        pid = os.fork()
    except BlockingIOError:
        return False
    if pid == 0:
        if keep:
            signal.pause()
        os._exit(0)
    if not keep:
        os.waitpid(pid, 0)
    return True


def _count_tasks() -> int | None:
    """What RLIMIT_NPROC counts for this uid, found by bisecting it; None where it does not bind."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    low, high = 0, min(hard, 1 << 22) if hard != resource.RLIM_INFINITY else 1 << 22
    resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
    if _try_fork(keep=False):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        resource.setrlimit(resource.RLIMIT_NPROC, (middle, hard))
        if _try_fork(keep=False):
            high = middle
        else:
            low = middle
    return low
