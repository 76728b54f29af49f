"""Landlock by raw system calls: files, TCP, abstract unix sockets and signals (standard library only)."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pipelines.sandbox.privileges import libc

_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_VERSION = 1
_PATH_BENEATH = 1

EXECUTE: Final = 1 << 0
WRITE_FILE: Final = 1 << 1
READ_FILE: Final = 1 << 2
READ_DIR: Final = 1 << 3
REMOVE_DIR: Final = 1 << 4
REMOVE_FILE: Final = 1 << 5
MAKE_DIR: Final = 1 << 7
MAKE_REG: Final = 1 << 8
REFER: Final = 1 << 13
TRUNCATE: Final = 1 << 14

READ: Final = READ_FILE | READ_DIR
OWN: Final = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | REFER | TRUNCATE
"""Rights on the slot. Links, devices, FIFOs and sockets cannot be made, and nothing in it can be executed."""

_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
_HANDLED = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""File rights known since each ABI; what is handled and not granted is denied."""
_TCP = 3
_TCP_SINCE = 4
_SCOPES = 3
SCOPES_SINCE: Final = 6


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """The kernel's Landlock ABI; 0 where it has none or none is enabled."""
    found: int = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(0, found)


class Ruleset:
    """What a process and its descendants may reach; everything else is denied."""

    def __init__(self, version: int) -> None:
        self.handled = max((files for since, files in _HANDLED.items() if since <= version), default=0)
        attributes = _Ruleset(
            self.handled, _TCP if version >= _TCP_SINCE else 0, _SCOPES if version >= SCOPES_SINCE else 0
        )
        self.descriptor = _checked(
            libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)), 0),
            "landlock_create_ruleset",
        )

    def allow(self, paths: Iterable[str | Path], access: int) -> None:
        """Grant ``access`` on each path and everything below it; a path that does not exist is skipped."""
        for path in paths:
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                self._allow(descriptor, access, str(path))
            finally:
                os.close(descriptor)

    def _allow(self, descriptor: int, access: int, path: str) -> None:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _FILE_RIGHTS
        rule = _PathBeneath(access & self.handled, descriptor)
        _checked(
            libc.syscall(_ADD_RULE, self.descriptor, _PATH_BENEATH, ctypes.byref(rule), 0),
            f"landlock_add_rule for {path}",
        )

    def restrict(self) -> None:
        """Put the rules in force for this process, for good."""
        _checked(libc.syscall(_RESTRICT_SELF, self.descriptor, 0), "landlock_restrict_self")
        os.close(self.descriptor)


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result
