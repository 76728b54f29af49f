"""What honest code does, and how it may end; what it leaves behind is read as if it were hostile."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
RESULT = Path("result.json")


def nothing(request: Any) -> None:
    """Return at once."""


def echo(request: Any) -> None:
    RESULT.write_text(json.dumps({"request": request, "environment": dict(os.environ), "files": sorted(os.listdir())}))
    print("to stdout")
    print("to stderr", file=sys.stderr)


def exits(request: Any) -> None:
    """End in the way that is asked for."""
    match request["how"]:
        case "raise":
            raise ValueError("the user's own mistake")
        case "raise without stderr":
            os.closerange(0, 3)
            raise ValueError("nobody hears this")
        case "exit from a thread":
            threading.Thread(target=os._exit, args=(request["code"],)).start()
            time.sleep(60)
        case "memory":
            raise MemoryError
        case "exit":
            sys.exit(request["code"])
        case "_exit":
            os._exit(request["code"])
        case "abort":
            _unflushed()
            os.abort()
        case "segfault":
            ctypes.string_at(0)


def _unflushed() -> None:
    """Write through C's own buffer, as MLIR's dumps are."""
    libc.fopen.restype = ctypes.c_void_p
    file = libc.fopen(b"buffered", b"w")
    libc.fputs(b"the tail", ctypes.c_void_p(file))


def hang(request: Any) -> None:
    _unflushed()
    Path("hanging").write_text(str(os.getpid()))
    if request.get("stubborn"):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    while True:
        if request.get("sleep"):
            time.sleep(0.01)


def burn(request: Any) -> None:
    while True:
        pass


def delete_everything(request: Any) -> None:
    shutil.rmtree(".", ignore_errors=True)
    with contextlib.suppress(OSError):
        os.rmdir(os.getcwd())


def close_everything(request: Any) -> None:
    os.closerange(0, 1 << 20)
    Path("still").write_text("alive")


def hostile_tree(request: Any) -> None:
    for number in range(request["files"]):
        os.close(os.open(f"file-{number}", os.O_CREAT | os.O_WRONLY, 0))
    here = os.getcwd()
    for _ in range(request["depth"]):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)
    os.umask(0o777)
    os.mkdir("closed")


def forge(request: Any) -> None:
    os.makedirs("a/b")
    Path("a/b/ok").write_text("fine")
    Path("small").write_text("small")
    with Path("huge").open("wb") as file:
        file.truncate(request["size"])
    os.mkdir("directory")


def write_and_end(request: Any) -> None:
    Path("big").write_bytes(b"x" * request["size"])


def slow_echo(request: Any) -> None:
    time.sleep(request["s"])
    RESULT.write_text(json.dumps(request["n"]))


def grow(request: Any) -> None:
    with Path("growing").open("w", buffering=1) as file:
        for number in range(10):
            print(number, file=file)
            time.sleep(0.03)
