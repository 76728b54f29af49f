"""The zygote: a process that has imported and warmed a compiler, and forks a child for each run.

It runs trusted code only and stays single-threaded. For each run it takes a connection to the sandbox and a file
with the request, which the child reads. On the connection ``t`` and ``k`` ask for the end of the slot, and its
closing means that nobody waits any more. A run is over when no process of its process group is left: setsid and
setpgid are denied to children, and orphans come back to the zygote, so ``waitpid`` on the group tells.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType

from pipelines.sandbox import child, home, wire
from pipelines.sandbox.privileges import become_subreaper

_DRAIN_MS = 5
_TEXT = 8000
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/urandom")


class Run:
    """One child and all that descends from it, seen from the zygote."""

    def __init__(self, connection: socket.socket, leader: int) -> None:
        self.connection = connection
        self.leader = leader
        self.descriptor = os.pidfd_open(leader)
        self.status = 0
        self.cpu_s = 0.0
        self.draining = False

    def kill(self, number: int) -> None:
        """Signal every process of the slot; the unreaped leader keeps the group's number from reuse."""
        if not self.draining:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.leader, number)

    def drain(self) -> bool:
        """Reap the leader, which has ended, and what is left of its group; whether nothing is."""
        if not self.draining:
            self.draining = True
            _, self.status, usage = os.wait4(self.leader, 0)
            self.cpu_s += usage.ru_utime + usage.ru_stime
        while True:
            try:
                pid, _, usage = os.wait4(-self.leader, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            self.cpu_s += usage.ru_utime + usage.ru_stime

    def close(self) -> None:
        """Forget the run."""
        os.close(self.descriptor)
        self.connection.close()


class Zygote:
    """The fork server's loop."""

    def __init__(self, control: socket.socket, setup: wire.Message, preload: ModuleType) -> None:
        self.control = control
        self.setup = setup
        self.preload = preload
        self.runs: dict[int, Run] = {}  # by the descriptors that are polled for it
        self.draining: list[Run] = []
        self.poll = select.poll()
        self.poll.register(control, select.POLLIN)

    def serve(self) -> bool:
        """Fork and reap until the sandbox has gone, then kill all that is left.

        Returns whether it said goodbye; if not it has died, and what it held must be removed.
        """
        while True:
            ready = self.poll.poll(_DRAIN_MS if self.draining else None)
            descriptor = ready[0][0] if ready else None  # one a turn: numbers are reused
            if descriptor in self.runs:
                self._hear(self.runs[descriptor], descriptor)
            elif descriptor is not None:
                try:
                    received = wire.receive_descriptors(self.control, 2)
                except (EOFError, ConnectionError):
                    self._end()
                    return False
                if received is None:
                    self._end()
                    return True
                self._fork(*received)
            for run in list(self.draining):
                self._drain(run)

    def _fork(self, connection: int, request: int) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            with socket.socket(fileno=connection) as told, contextlib.suppress(OSError):
                wire.send(told, {"refused": f"fork: {error.strerror}", "traceback": ""})
                wire.send(told, {"status": 1, "cpu_s": 0.0})
            os.close(request)
            return
        if pid == 0:
            child.main(connection, request, self.setup, self.preload)
        os.close(request)
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)  # the child does the same; whichever comes first, the group exists
        run = Run(socket.socket(fileno=connection), pid)
        for descriptor in (run.descriptor, connection):
            self.runs[descriptor] = run
            self.poll.register(descriptor, select.POLLIN)
        self._tell(run, {"pid": pid})

    def _hear(self, run: Run, descriptor: int) -> None:
        """The leader has ended, or the sandbox asks for the end."""
        if descriptor == run.descriptor:
            run.kill(signal.SIGKILL)
            self._drain(run)
            return
        try:
            orders = run.connection.recv(16)
        except OSError:
            orders = b""
        if not orders:
            self.poll.unregister(descriptor)
            del self.runs[descriptor]
        run.kill(signal.SIGTERM if orders == b"t" else signal.SIGKILL)

    def _drain(self, run: Run) -> None:
        """Reap; when nothing of the slot is left, report and forget it."""
        if run.descriptor in self.runs:
            self.poll.unregister(run.descriptor)
            del self.runs[run.descriptor]
            self.draining.append(run)
        if not run.drain():
            return
        self.draining.remove(run)
        self._tell(run, {"status": run.status, "cpu_s": run.cpu_s})
        if self.runs.pop(run.connection.fileno(), None):
            self.poll.unregister(run.connection)
        run.close()

    def _tell(self, run: Run, message: wire.Message) -> None:
        with contextlib.suppress(OSError):
            wire.send(run.connection, message)

    def _end(self) -> None:
        runs = {*self.runs.values(), *self.draining}
        for run in runs:
            run.kill(signal.SIGKILL)
        for run in runs:
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PIDFD, run.descriptor, os.WEXITED | os.WNOWAIT)
                run.kill(signal.SIGKILL)  # what a dying leader was just forking
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.waitpid(-run.leader, 0)


def _warm(setup: wire.Message) -> ModuleType:
    sys.path[:0] = setup["path"]
    preload = importlib.import_module(setup["preload"])
    warm = getattr(preload, "warm", None)
    if warm is not None:
        warm(Path(setup["home"], "warm"))
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads != 1:
        raise RuntimeError(f"{setup['preload']} left {threads} threads running; forking would be unsafe")
    return preload


def _readable(preload: ModuleType) -> list[str]:
    """What every child may read: this Python, this package, the preload module, the system's libraries."""
    paths = sysconfig.get_paths()
    python = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    python.append(f"{sys.base_prefix}/lib")
    here = str(Path(__file__).parents[1])
    return sorted(path for path in {*python, here, preload.__file__ or here, *_SYSTEM} if os.path.exists(path))  # noqa: PTH110 - False where it may not look


def main() -> None:
    """Serve on the control connection whose descriptor is the only argument."""
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    setup = wire.Lines(control).first()
    become_subreaper()
    try:
        preload = _warm(setup)
    except BaseException as error:  # whatever it was, the sandbox is told instead of left waiting
        wire.send(control, {"error": "".join(traceback.format_exception(error))[-_TEXT:]})
        return
    setup["zygote"] = os.getpid()
    setup["readable"] += _readable(preload)
    wire.send(control, {"readable": setup["readable"]})
    gc.collect()
    gc.freeze()
    if not Zygote(control, setup, preload).serve():
        home.remove_orphan(Path(setup["home"]))


if __name__ == "__main__":
    main()
