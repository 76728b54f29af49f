"""The system calls a child may make: an allow list, built once by the sandbox and loaded by each child.

What is allowed was found from compiles of the gallery and what Python and libc need around them; a call that is
neither allowed nor refused fails with ENOSYS, which libc answers by falling back to an older call.
"""

from __future__ import annotations

import ctypes
import errno
import struct
import tempfile
from typing import Any, Final

from pipelines.sandbox.model import SandboxUnavailable
from pipelines.sandbox.privileges import prctl
from pipelines.sandbox.syscalls import ALLOWED, ALLOWED_VALUES, REFUSED, Test

_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_OWN_PID: Final = 0x5EC0C0DE
"""Stands for the child's own pid in the exported program; no pid is that large."""
_INSTRUCTION = struct.Struct("<HBBI")


def build(*, scopes: bool) -> bytes:
    """Compile the filter; without Landlock ``scopes`` a process may signal none but the child itself.

    Raises:
        SandboxUnavailable: libseccomp is missing.
    """
    try:
        import pyseccomp
    except (ImportError, OSError, RuntimeError) as error:
        raise SandboxUnavailable(f"libseccomp cannot be loaded ({error}); install libseccomp2") from error
    rules = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.ENOSYS))
    for name in ALLOWED:
        _add(pyseccomp, rules, pyseccomp.ALLOW, name)
    for name in REFUSED:
        _add(pyseccomp, rules, pyseccomp.ERRNO(errno.EPERM), name)
    for name, tests in ALLOWED_VALUES.items():
        for test in tests:
            _add(pyseccomp, rules, pyseccomp.ALLOW, name, test)
    _add(pyseccomp, rules, pyseccomp.ERRNO(errno.EOPNOTSUPP), "fallocate")  # libc then writes, which is counted
    for name in ("kill", "tgkill"):
        if scopes:
            _add(pyseccomp, rules, pyseccomp.ALLOW, name)
        else:
            _add(pyseccomp, rules, pyseccomp.ALLOW, name, Test(0, 0xFFFFFFFF, _OWN_PID))
            rules.add_rule(pyseccomp.ERRNO(errno.EPERM), name, pyseccomp.Arg(0, pyseccomp.NE, _OWN_PID))
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def _add(pyseccomp: Any, rules: Any, action: int, name: str, test: Test | None = None) -> None:
    """Add one rule, unless this architecture or libseccomp has no such call."""
    if pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) < 0:
        return
    if test is None:
        rules.add_rule(action, name)
    else:
        rules.add_rule(action, name, pyseccomp.Arg(test.argument, pyseccomp.MASKED_EQ, test.mask, test.value))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def load(program: bytes, pid: int) -> None:
    """Put the filter in force for this process (``pid``) and its descendants, for good."""
    instructions = [
        (code, yes, no, pid if value == _OWN_PID else value)
        for code, yes, no, value in _INSTRUCTION.iter_unpack(program)
    ]
    patched = b"".join(_INSTRUCTION.pack(*instruction) for instruction in instructions)
    prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(_Program(len(instructions), patched)))
