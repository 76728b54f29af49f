"""What hostile code tries. Runs inside the sandbox; it needs no more than the standard library."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import platform
import resource
import shutil
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

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


def read_outside(request: Any) -> None:
    parent = os.getppid()
    paths = [
        "/etc/passwd", "/etc/shadow", "/etc/hostname", "/root", "/home", "/", "/tmp", "/bin/sh", "/usr/bin/env",
        "/proc", "/proc/self/environ", "/proc/self/maps", "/proc/meminfo", "/sys/kernel", "/dev", "/dev/shm",
        "/var/log", *(f"/proc/{pid}/{name}" for pid in (parent, request["server"]) for name in ("environ", "mem", "maps", "cmdline", "status")),
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
    attempts: dict[str, Callable[[], Any]] = {}
    for who, pid in {
        "parent": os.getppid(),
        "server": request["server"],
        "sibling": request["sibling"],
        "init": 1,
    }.items():
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
    attempts |= {
        "all": lambda: os.kill(-1, signal.SIGKILL),
        "renice the user": lambda: os.setpriority(os.PRIO_USER, 0, 19),
    }
    attempts |= {
        "new session": os.setsid,
        "new group": lambda: os.setpgid(0, 0),
        "join a group": lambda: os.setpgid(0, os.getppid()),
    }
    del attempts["kill init"], attempts["kill the group of init"]  # were one of these to work, nobody could tell
    attempt(attempts)


def read_memory(pid: int) -> int:
    return checked(libc.process_vm_readv(pid, b"\0" * 16, 1, b"\0" * 16, 1, 0))


def own(pid: int) -> None:
    """Have SIGIO, as any signal, sent to another process when a pipe becomes readable."""
    import fcntl

    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reader, fcntl.F_SETSIG, int(signal.SIGKILL))
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writer, b"x")


def privileges(request: Any) -> None:
    attempts: dict[str, Callable[[], Any]] = {
        "setuid": lambda: os.setuid(0), "setresuid": lambda: os.setresuid(1, 1, 1), "setgid": lambda: os.setgid(1),
        "setgroups": lambda: os.setgroups([0]), "chroot": lambda: os.chroot("."), "nice": lambda: os.nice(-5),
        "raise a limit": lambda: checked(libc.setrlimit(9, struct.pack("<QQ", 1 << 40, 1 << 40))),
        "mount": lambda: checked(libc.mount(b"none", b".", b"tmpfs", 0, 0)),
        "unshare": lambda: checked(libc.unshare(0x10000000)), "setns": lambda: checked(libc.setns(0, 0)),
        "memfd": lambda: os.memfd_create("x"), "keep alive": lambda: checked(libc.prctl(1, 0, 0, 0, 0)),
        "steal a terminal's input": lambda: checked(libc.ioctl(0, 0x5412, b"x")),
        "shared memory": lambda: checked(libc.shmget(0, 4096, 0o1600)),
        "semaphores": lambda: checked(libc.semget(0, 1, 0o1600)), "messages": lambda: checked(libc.msgget(0, 0o1600)),
        "message queue": lambda: checked(libc.syscall(240, b"x", os.O_CREAT | os.O_RDWR, 0o600, 0)),
        "fallocate": lambda: allocate(), "inotify": lambda: checked(libc.inotify_init1(0)),
        "keys": lambda: checked(libc.syscall(250, 0, -3, 1)), "bpf": lambda: checked(libc.syscall(321, 0, 0, 0)),
        "perf": lambda: checked(libc.syscall(298, bytes(128), 0, -1, -1, 0)),
        "io_uring": lambda: checked(libc.syscall(425, 8, bytes(120))),
        "userfaultfd": lambda: checked(libc.syscall(323, 0)),
        "by handle": lambda: checked(libc.syscall(304, -100, bytes(16), 0)),
        "clone a user namespace": lambda: checked(libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)),
        "clone as a sibling": lambda: checked(libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0)),
        "clone3": lambda: checked(libc.syscall(435, struct.pack("<11Q", 0x10000000, *[0] * 3, 17, *[0] * 6), 88)),
        "own descriptors for a thread": lambda: checked(libc.syscall(56, 0x100 | 0x200 | 0x800 | 0x10000, 0, 0, 0, 0)),
        "unshare descriptors": lambda: checked(libc.syscall(436, 500, 600, 2)),
        "modules": lambda: checked(libc.syscall(313, 0, b"", 0)), "kexec": lambda: checked(libc.syscall(246, 0, 0, 0, 0)),
        "personality": lambda: checked(libc.personality(0x0040000)), "a call from the future": lambda: checked(libc.syscall(9999)),
    }  # fmt: skip
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
    chunk = b"x" * (1 << 20)
    match request["how"]:
        case "one file":
            with Path("big").open("wb") as file:
                write_forever(file.fileno(), chunk)
        case "stderr":
            write_forever(2, chunk)
        case "many files":
            for number in range(1_000_000):
                Path(f"file-{number}").write_bytes(chunk)
        case "empty files":
            for number in range(10_000_000):
                os.close(os.open(f"file-{number}", os.O_CREAT | os.O_WRONLY))
        case "directories":
            while True:
                os.mkdir("d")
                os.chdir("d")
        case "unlinked":
            kept = []
            for number in range(200):
                kept.append(os.open("gone", os.O_CREAT | os.O_WRONLY))
                os.unlink("gone")
                for _ in range(4):
                    os.write(kept[-1], chunk)
        case "unlinked and mapped":
            areas = []
            while True:
                areas.append(map_unlinked(chunk))
        case "sparse":
            with Path("sparse").open("wb") as file:
                file.truncate(request["size"])
            return
    time.sleep(120)


def write_forever(descriptor: int, chunk: bytes) -> NoReturn:
    while True:
        os.write(descriptor, chunk)


def map_unlinked(chunk: bytes) -> int:
    """A file of 4 MiB without a name or a descriptor, of which one page is mapped (mmap would keep a descriptor)."""
    descriptor = os.open("gone", os.O_CREAT | os.O_RDWR)
    for _ in range(4):
        os.write(descriptor, chunk)
    libc.mmap.restype = ctypes.c_void_p
    address = libc.mmap(None, 4096, 1, 1, descriptor, ctypes.c_long(0))
    os.unlink("gone")
    os.close(descriptor)
    return address


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
    os.makedirs("closed/to", exist_ok=True) if os.geteuid() == 0 else os.mkdir("closed")


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
