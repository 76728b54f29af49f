"""Attempts to reach what lies outside the slot. Each must fail with an error."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import resource
import shutil
import signal
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
RESULT = Path("result.json")


def attempt(attempts: dict[str, Callable[[], Any]]) -> None:
    """Try each; write its error's name, or None where it succeeded, to ``result.json``."""
    found: dict[str, str | None] = {}
    for name, action in attempts.items():
        found[name] = None
        try:
            action()
        except OSError as error:
            found[name] = errno.errorcode.get(error.errno or 0, str(error))
    RESULT.write_text(json.dumps(found))


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


_PROCESS_FILES = ("environ", "mem", "maps", "cmdline", "status")


def read_outside(request: Any) -> None:
    parent = os.getppid()
    paths = [
        "/etc/passwd", "/etc/shadow", "/etc/hostname", "/root", "/home", "/", "/tmp", "/bin/sh", "/usr/bin/env",
        "/proc", "/proc/self/environ", "/proc/self/maps", "/proc/meminfo", "/sys/kernel", "/dev", "/dev/shm",
        "/var/log", *(f"/proc/{pid}/{name}" for pid in (parent, request["server"]) for name in _PROCESS_FILES),
        *request["paths"], "..", "../..", "/proc/self/root/etc/passwd", "/proc/self/cwd/../zygote.log",
    ]  # fmt: skip
    attempts: dict[str, Callable[[], Any]] = {
        f"open {path}": lambda path=path: os.open(path, os.O_RDONLY) for path in paths
    }
    attempts |= {f"list {path}": lambda path=path: os.listdir(path) for path in ("/", "/proc", "/home", "..", "/etc")}
    attempts |= {
        f"link {name}": lambda name=name: os.readlink(f"/proc/{parent}/{name}") for name in ("exe", "cwd", "fd/0")
    }
    attempt(attempts)


def write_outside(request: Any) -> None:
    database, readable, directory = request["database"], request["readable"], request["directory"]
    slot = os.getcwd()
    attempts: dict[str, Callable[[], Any]] = {
        "create": lambda: os.open(f"{directory}/escaped", os.O_CREAT | os.O_WRONLY),
        "create above": lambda: os.open("../escaped", os.O_CREAT | os.O_WRONLY),
        "create in /tmp": lambda: os.open("/tmp/escaped", os.O_CREAT | os.O_WRONLY),
        "create in /dev/shm": lambda: os.open("/dev/shm/escaped", os.O_CREAT | os.O_WRONLY),
        "unnamed file": lambda: os.open(directory, os.O_TMPFILE | os.O_RDWR),
        "append": lambda: os.open(database, os.O_WRONLY | os.O_APPEND),
        "open truncating": lambda: os.open(database, os.O_WRONLY | os.O_TRUNC),
        "open truncating to read": lambda: os.open(readable, os.O_RDONLY | os.O_TRUNC),
        "truncate": lambda: os.truncate(database, 0),
        "unlink": lambda: os.unlink(database),
        "rename away": lambda: os.rename(database, "stolen"),
        "rename over": lambda: os.rename("stdout", database),
        "hard link": lambda: os.link(readable, "linked"),
        "hard link inside": lambda: os.link("stdout", "linked"),
        "symlink": lambda: os.symlink("/etc/passwd", "linked"),
        "mkdir": lambda: os.mkdir(f"{directory}/escaped"),
        "mkdir above": lambda: os.mkdir("../escaped"),
        "remove the slot": lambda: os.rmdir(slot),
        "rename the slot": lambda: os.rename(slot, slot + "-moved"),
        "fifo": lambda: os.mkfifo("fifo"),
        "device": lambda: os.mknod("device", 0o600 | 0o020000, os.makedev(1, 3)),
        "chmod": lambda: os.chmod(database, 0o777),
        "chmod by descriptor": lambda: os.fchmod(os.open(readable, os.O_RDONLY), 0o777),
        "chown": lambda: os.chown(database, 1, 1),
        "utime": lambda: os.utime(database, (0, 0)),
        "utime by descriptor": lambda: os.utime(os.open(readable, os.O_RDONLY), (0, 0)),
        "setxattr": lambda: os.setxattr(database, "user.x", b""),
        "write to the toolchain": lambda: os.open(request["toolchain"], os.O_WRONLY),
        "memory of the parent": lambda: os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR),
    }
    attempt(attempts)


def sockets(request: Any) -> None:
    families = {
        "tcp": (socket.AF_INET, socket.SOCK_STREAM), "udp": (socket.AF_INET, socket.SOCK_DGRAM),
        "tcp6": (socket.AF_INET6, socket.SOCK_STREAM), "udp6": (socket.AF_INET6, socket.SOCK_DGRAM),
        "unix": (socket.AF_UNIX, socket.SOCK_STREAM), "unix datagram": (socket.AF_UNIX, socket.SOCK_DGRAM),
        "netlink": (socket.AF_NETLINK, socket.SOCK_RAW), "packet": (socket.AF_PACKET, socket.SOCK_RAW),
        "vsock": (40, socket.SOCK_STREAM), "algorithm": (38, socket.SOCK_SEQPACKET),
    }  # fmt: skip
    attempts: dict[str, Callable[[], Any]] = {
        name: lambda pair=pair: socket.socket(*pair) for name, pair in families.items()
    }
    attempts["pair"] = socket.socketpair
    for number in range(3, 64):  # had a connection been left open, it could be used
        attempts[f"inherited {number}"] = lambda number=number: socket.socket(fileno=number)
    attempt(attempts)


def abstract(request: Any) -> None:
    """Without the filter on socket(2), Landlock alone must refuse."""
    client = socket.socket(socket.AF_UNIX)
    stream = socket.socket(socket.AF_INET)
    attempt({
        "abstract": lambda: client.connect(b"\0" + request["name"].encode()),
        "tcp": lambda: stream.connect(("127.0.0.1", request["port"])),
        "bind": lambda: socket.socket(socket.AF_INET).bind(("127.0.0.1", 0)),
        "parent": lambda: os.kill(os.getppid(), 0),
    })  # fmt: skip


def signals(request: Any) -> None:
    """Harm processes that the test made to be harmed, and look at others only: one day a defence is missing here."""
    attempts: dict[str, Callable[[], Any]] = {}
    for who, pid in {"parent": os.getppid(), "victim": request["victim"], "sibling": request["sibling"]}.items():
        attempts |= {
            f"kill {who}": lambda pid=pid: os.kill(pid, signal.SIGKILL),
            f"stop {who}": lambda pid=pid: os.kill(pid, signal.SIGSTOP),
            f"kill the group of {who}": lambda pid=pid: os.kill(-pid, signal.SIGKILL),
            f"tgkill {who}": lambda pid=pid: checked(libc.tgkill(pid, pid, signal.SIGKILL)),
            f"queue to {who}": lambda pid=pid: checked(libc.sigqueue(pid, signal.SIGKILL, 0)),
            f"pidfd {who}": lambda pid=pid: os.pidfd_open(pid),
            f"trace {who}": lambda pid=pid: checked(libc.ptrace(16, pid, 0, 0)),
            f"seize {who}": lambda pid=pid: checked(libc.ptrace(0x4206, pid, 0, 0)),
            f"read {who}": lambda pid=pid: read_memory(pid),
            f"limit {who}": lambda pid=pid: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)),
            f"renice {who}": lambda pid=pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
            f"pin {who}": lambda pid=pid: os.sched_setaffinity(pid, {0}),
            f"own a descriptor for {who}": lambda pid=pid: own(pid),
        }
    for who, pid in {"init": 1, "server": request["server"]}.items():
        attempts |= {
            f"signal {who}": lambda pid=pid: os.kill(pid, 0),
            f"pidfd {who}": lambda pid=pid: os.pidfd_open(pid),
            f"limits of {who}": lambda pid=pid: resource.prlimit(pid, resource.RLIMIT_CPU),
        }
    attempts |= {
        "all": lambda: os.kill(-1, 0),
        "renice the group": lambda: os.setpriority(os.PRIO_PGRP, 0, 1),
    }
    attempts |= {
        "new session": os.setsid,
        "new group": lambda: os.setpgid(0, 0),
        "join a group": lambda: os.setpgid(0, os.getppid()),
    }
    attempt(attempts)


def read_memory(pid: int) -> int:
    return checked(libc.process_vm_readv(pid, b"\0" * 16, 1, b"\0" * 16, 1, 0))


def own(pid: int) -> None:
    """Have SIGIO, as any signal, sent to another process when a pipe becomes readable."""
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reader, fcntl.F_SETSIG, int(signal.SIGKILL))
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writer, b"x")


def privileges(request: Any) -> None:
    """Try what would give more rights, and every system call in ``numbers`` by number."""
    numbers = request["numbers"]
    clone, clone3, close_range = numbers.pop("clone"), numbers.pop("clone3"), numbers.pop("close_range")
    new_user, parent, thread_alone = 0x10000000, 0x8000, 0x100 | 0x200 | 0x800 | 0x10000
    attempts: dict[str, Callable[[], Any]] = {
        "setuid": lambda: os.setuid(0),
        "setresuid": lambda: os.setresuid(1, 1, 1),
        "setgroups": lambda: os.setgroups([0]),
        "nice": lambda: os.nice(-5),
        "raise a limit": lambda: checked(libc.setrlimit(resource.RLIMIT_AS, struct.pack("<QQ", 1 << 40, 1 << 40))),
        "mount": lambda: checked(libc.mount(b"none", b".", b"tmpfs", 0, 0)),
        "unshare": lambda: checked(libc.unshare(new_user)),
        "outlive the zygote": lambda: checked(libc.prctl(1, 0, 0, 0, 0)),
        "steal a terminal's input": lambda: checked(libc.ioctl(0, 0x5412, b"x")),
        "shared memory": lambda: checked(libc.shmget(0, 4096, 0o1600)),
        "unnamed file in memory": lambda: os.memfd_create("x"),
        "reserve disk": allocate,
        "clone a user namespace": lambda: checked(libc.syscall(clone, new_user | signal.SIGCHLD, 0, 0, 0, 0)),
        "clone as a sibling": lambda: checked(libc.syscall(clone, parent | signal.SIGCHLD, 0, 0, 0, 0)),
        "clone3": lambda: checked(libc.syscall(clone3, struct.pack("<11Q", new_user, 0, 0, 0, 17, *[0] * 6), 88)),
        "own descriptors for a thread": lambda: checked(libc.syscall(clone, thread_alone, 0, 0, 0, 0)),
        "unshare descriptors": lambda: checked(libc.syscall(close_range, 500, 600, 2)),
        "a call from the future": lambda: checked(libc.syscall(9999)),
    }
    attempts |= {
        f"call {name}": lambda number=number: checked(libc.syscall(number, *[0] * 6))
        for name, number in numbers.items()
    }
    attempt(attempts)


def allocate() -> None:
    descriptor = os.open("big", os.O_CREAT | os.O_RDWR)
    checked(libc.fallocate(descriptor, 0, ctypes.c_long(0), ctypes.c_long(1 << 40)))


def other_abi(request: Any) -> None:
    """Call getpid as a 32-bit program would, around a filter that knows 64-bit numbers only."""
    if platform.machine() != "x86_64":
        os.kill(os.getpid(), signal.SIGSYS)
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20; int 0x80; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    ctypes.CFUNCTYPE(ctypes.c_int)(address)()


def execute(request: Any) -> None:
    """Execute what is allowed, then what is not."""
    with contextlib.suppress(OSError):
        shutil.copyfile(request["allowed"], "copy")
    attempts = {path: lambda path=path: spawn(path) for path in (request["allowed"], *request["others"])}
    Path("script").write_text("#!/bin/sh\ntrue\n")
    attempts |= {path: lambda path=path: spawn(path) for path in ("./copy", "./script")}
    attempts["by descriptor"] = lambda: checked(
        libc.execveat(os.open(request["allowed"], os.O_RDONLY), b"", 0, 0, 0x1000)
    )
    attempt(attempts)


def spawn(path: str) -> None:
    pid = os.posix_spawn(path, [path], {})
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 127:
        raise OSError(errno.EACCES, "not executed")
