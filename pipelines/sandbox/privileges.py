"""What a process gives up, and its own limits: raw system calls, standard library only."""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path
from typing import Any, Final

libc: Final = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_SECUREBITS = 28
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECUREBITS = 0x2F
"""NOROOT and NO_SETUID_FIXUP with their locks, KEEP_CAPS locked off, no raising of ambient capabilities."""
_CAP_SETGID = 1 << 6
_CAP_SETPCAP = 1 << 8
_CAPABILITY_VERSION_3 = 0x20080522


def prctl(option: int, value: int = 0, third: Any = 0) -> None:
    """Set or ask for a property of this process by ``prctl``.

    Raises:
        OSError: the kernel refused.
    """
    if libc.prctl(option, ctypes.c_ulong(value), third, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}): {os.strerror(ctypes.get_errno())}")


def become_subreaper() -> None:
    """Make orphaned descendants children of this process."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """End this process by SIGKILL when ``parent`` has ended."""
    prctl(_PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os.kill(os.getpid(), 9)


def forbid_new_privileges() -> None:
    """Make execve grant nothing, for good; Landlock and seccomp require it."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def limit(cpu_s: int, memory: int, file: int, open_files: int, processes: int | None) -> None:
    """Set the rlimits of this process and its descendants; ``processes`` None leaves that to a cgroup."""
    bounds = {
        resource.RLIMIT_CPU: (cpu_s, cpu_s + 1),  # SIGXCPU first, which still flushes
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_FSIZE: (file, file),
        resource.RLIMIT_NOFILE: (open_files, open_files),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_MSGQUEUE: (0, 0),
        resource.RLIMIT_MEMLOCK: (0, 0),
        resource.RLIMIT_SIGPENDING: (256, 256),
    }
    if processes is not None:
        bounds[resource.RLIMIT_NPROC] = (processes, processes)
    for kind, (soft, hard) in bounds.items():
        _, allowed = resource.getrlimit(kind)
        if allowed != resource.RLIM_INFINITY:  # this machine may bound us lower already, and that cannot be raised
            soft, hard = min(soft, allowed), min(hard, allowed)
        resource.setrlimit(kind, (soft, hard))


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop(uid: int | None) -> None:
    """Give up every capability and group, and the bounding set; become ``uid`` where one is given.

    Raises:
        OSError: the kernel refused.
    """
    held, _ = capabilities()
    if held & _CAP_SETGID:
        os.setgroups([])
    if held & _CAP_SETPCAP:
        for capability in range(int(Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1):
            prctl(_PR_CAPBSET_DROP, capability)
        prctl(_PR_SET_SECUREBITS, _SECUREBITS)
    if uid is not None:
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    none = (_Data * 2)()
    if libc.capset(ctypes.byref(_Header(_CAPABILITY_VERSION_3, 0)), none) != 0:
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")


def capabilities() -> tuple[int, int]:
    """This process's (effective, permitted) capabilities, as bit sets."""
    data = (_Data * 2)()
    if libc.capget(ctypes.byref(_Header(_CAPABILITY_VERSION_3, 0)), data) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    return data[0].effective | data[1].effective << 32, data[0].permitted | data[1].permitted << 32
