"""The child of one run, from the fork to libc's exit: it confines itself, then calls one function."""

from __future__ import annotations

import base64
import ctypes
import faulthandler
import importlib
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from pipelines.sandbox import landlock, privileges, probe, seccomp, wire
from pipelines.sandbox.model import EXIT_MEMORY

_ALL = 1 << 30
_TEXT = 8000
_OUTPUT = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_FLUSHING = (signal.SIGTERM, signal.SIGABRT, signal.SIGXCPU, signal.SIGXFSZ)


def main(connection: int, request: int, setup: wire.Message, preload: ModuleType) -> NoReturn:
    """Confine this process as ``setup`` and the request say, and call the requested function."""
    try:
        os.setpgid(0, 0)
        order = _read(request)
        function = _find(preload, order["function"])
        _keep_only(connection)
        _prepare(order)
        _confine(setup, order)
        os.close(connection)
    except BaseException as error:  # nothing may run half confined
        _refuse(connection, error)
    _call(function, order["request"])


def _read(descriptor: int) -> wire.Message:
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        order: wire.Message = json.loads(file.read())
    return order


def _find(preload: ModuleType, name: str) -> Callable[[Any], None]:
    """Look the function up: one of the preload module, or of what it lists in ``FUNCTIONS``."""
    module, _, attribute = name.partition(":")
    if module != preload.__name__ and name not in {probe.FUNCTION, *getattr(preload, "FUNCTIONS", ())}:
        raise LookupError(f"{name} is neither in {preload.__name__} nor in its FUNCTIONS")
    function: Callable[[Any], None] = getattr(importlib.import_module(module), attribute)
    return function


def _keep_only(connection: int) -> None:
    """Close every inherited descriptor but the standard ones and the connection."""
    os.closerange(3, connection)
    os.closerange(connection + 1, _ALL)


def _prepare(order: wire.Message) -> None:
    """Move into the slot: working directory, standard streams, environment, signal handlers."""
    slot = order["slot"]
    os.chdir(slot)
    for number, path, flags in ((0, "/dev/null", os.O_RDONLY), (1, "stdout", _OUTPUT), (2, "stderr", _OUTPUT)):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 - descriptors, open until the end
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    _set_environment({"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": slot, "TMPDIR": slot, **order["env"]})
    tempfile.tempdir = slot
    sys.dont_write_bytecode = True
    faulthandler.enable(file=2)
    _flush_on_signals()


def _set_environment(values: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(values)


def _flush_on_signals() -> None:
    """Let an abort, a polite kill and a used-up limit run libc's exit, which flushes C++ streams."""
    leave = ctypes.cast(privileges.libc.exit, ctypes.c_void_p)
    for number in _FLUSHING:
        privileges.libc.signal(int(number), leave)


def _confine(setup: wire.Message, order: wire.Message) -> None:
    """Give up everything but the slot and the toolchain; the order matters."""
    Path("/proc/self/oom_score_adj").write_text("1000")  # if memory runs out, not the server's
    for entrance in order["cgroups"]:
        Path(entrance).write_text("0")
    privileges.limit(**order["rlimits"])
    privileges.drop(order["uid"])
    privileges.die_with_parent(setup["zygote"])  # a change of uid would undo it
    privileges.forbid_new_privileges()
    if setup["landlock"]:
        rules = landlock.Ruleset(setup["landlock"])
        rules.allow(setup["readable"], landlock.READ)
        rules.allow(setup["executables"], landlock.READ | landlock.EXECUTE)
        rules.allow(["/dev/null"], landlock.READ | landlock.WRITE_FILE | landlock.TRUNCATE)
        rules.allow([order["slot"]], landlock.OWN)
        rules.restrict()
    if setup["seccomp"]:
        seccomp.load(base64.b64decode(setup["seccomp"]), os.getpid())


def _refuse(connection: int, error: BaseException) -> NoReturn:
    """Tell the sandbox why user code was not started, and end."""
    try:
        text = "".join(traceback.format_exception(error))[-_TEXT:]
        wire.send(socket.socket(fileno=connection), {"refused": str(error), "traceback": text})
    finally:
        os._exit(1)


def _call(function: Callable[[Any], None], request: object) -> NoReturn:
    """Call, and leave through libc's exit whatever happens: it flushes what C++ has buffered."""
    code = 1
    try:
        code = _outcome(function, request)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        privileges.libc.exit(code)
    raise AssertionError("exit returned")


def _outcome(function: Callable[[Any], None], request: object) -> int:
    """The exit code that tells how the function ended."""
    try:
        function(request)
    except SystemExit as error:
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code & 0xFF
        print(error.code, file=sys.stderr)
    except MemoryError:
        traceback.print_exc()
        return EXIT_MEMORY
    except BaseException:  # user code may raise anything, and the child ends here
        traceback.print_exc()
    else:
        return 0
    return 1
