"""Attempts to use more than is allowed. Each must end the run."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

libc = ctypes.CDLL(None, use_errno=True)


def fork_bomb(request: Any) -> None:
    while True:
        with contextlib.suppress(OSError):
            os.fork()


def thread_bomb(request: Any) -> None:
    while True:
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def orphans(request: Any) -> None:
    """Leave processes behind whose parent has ended, deaf to polite signals."""
    for _ in range(3):
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if os.fork() == 0:
                time.sleep(120)
            os._exit(0)
    Path("group").write_text(str(os.getpgrp()))


def allocate_memory(request: Any) -> None:
    kept = [bytearray(request["size"])]
    for index in range(0, len(kept[0]), 4096):
        kept[0][index] = 1


def allocate_in_many(request: Any) -> None:
    """Stay below each process's limit, and above it together."""
    children = []
    for _ in range(request["processes"]):
        pid = os.fork()
        if pid == 0:
            if request["shared"]:
                area = mmap.mmap(-1, request["size"])
                area.write(b"x" * request["size"])
            else:
                kept = b"x" * request["size"]
                assert kept
            time.sleep(120)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    time.sleep(120)


def headless_memory(request: Any) -> None:
    """End the main thread, whose entry in /proc then shows no memory, and allocate in another."""

    def work() -> None:
        time.sleep(0.2)
        kept = b"x" * request["size"]
        time.sleep(120)
        del kept

    for _ in range(request["processes"]):
        if os.fork() == 0:
            threading.Thread(target=work).start()
            libc.syscall(60, 0)
    time.sleep(120)


def fill(request: Any) -> None:
    """Write more than is allowed, in the way that is asked for."""
    FILLS[request["how"]]()
    time.sleep(120)


def sparse(request: Any) -> None:
    with Path("sparse").open("wb") as file:
        file.truncate(request["size"])


CHUNK = b"x" * (1 << 20)


def one_file() -> None:
    write_forever(os.open("big", os.O_CREAT | os.O_WRONLY))


def many_files() -> None:
    for number in range(1_000_000):
        Path(f"file-{number}").write_bytes(CHUNK)


def empty_files() -> None:
    for number in range(10_000_000):
        os.close(os.open(f"file-{number}", os.O_CREAT | os.O_WRONLY))


def directories() -> None:
    while True:
        os.mkdir("d")
        os.chdir("d")


def unlinked() -> None:
    for _ in range(200):
        descriptor = os.open("gone", os.O_CREAT | os.O_WRONLY)
        os.unlink("gone")
        for _ in range(4):
            os.write(descriptor, CHUNK)


def write_forever(descriptor: int) -> NoReturn:
    while True:
        os.write(descriptor, CHUNK)


def unlinked_and_mapped() -> NoReturn:
    """Keep files of 4 MiB by one mapped page each, without a name or a descriptor."""
    libc.mmap.restype = ctypes.c_void_p
    while True:
        descriptor = os.open("gone", os.O_CREAT | os.O_RDWR)
        for _ in range(4):
            os.write(descriptor, CHUNK)
        libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, ctypes.c_long(0))
        os.unlink("gone")
        os.close(descriptor)


FILLS: dict[str, Callable[[], None]] = {
    "one file": one_file,
    "stderr": lambda: write_forever(2),
    "many files": many_files,
    "empty files": empty_files,
    "directories": directories,
    "unlinked": unlinked,
    "unlinked and mapped": unlinked_and_mapped,
}
