"""The sandbox as its callers see it: start a zygote, run functions in confined children, read what they left."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

import pipelines
from pipelines.sandbox import tree, wire
from pipelines.sandbox.model import Confinement, Limits, Outcome, SandboxUnavailable, ZygoteSpec
from pipelines.sandbox.slot import Slot
from pipelines.sandbox.watch import Watcher

_WARM_S = 180.0


@dataclass(frozen=True)
class Finished:
    """A run that has ended: how, and its directory, which is there until the context is left."""

    outcome: Outcome
    slot: Slot


class Sandbox:
    """Runs functions of one preload module in confined children of one zygote.

    Usable from several threads at once. Start it in the process that uses it: a zygote does not survive its
    parent, and a forked copy of the parent must not share it.
    """

    def __init__(
        self, spec: ZygoteSpec, directory: Path, *, limits: Limits | None = None, trust_code: bool = False
    ) -> None:
        self.spec = spec
        self.directory = directory
        self.limits = limits or Limits()
        self.trust_code = trust_code
        self.confinement = Confinement(0, scopes=False, seccomp=False, processes="none", memory="none")
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._home: Path | None = None
        self._home_descriptor = -1
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the zygote and wait until it is warm; does nothing when it is running.

        Raises:
            SandboxUnavailable: code cannot be confined here, or the zygote does not start.
        """
        with self._lock:
            self._ensure()

    def close(self) -> None:
        """End the zygote and every child, and remove all slots."""
        with self._lock:
            self._stop()
            if self._home is not None:
                os.close(self._home_descriptor)
                parent = os.open(self._home.parent, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    tree.remove(parent, self._home.name)
                finally:
                    os.close(parent)
                self._home = None

    @contextlib.contextmanager
    def run(
        self,
        function: str,
        request: Mapping[str, JsonValue],
        files: Mapping[str, bytes] | None = None,
        *,
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        poll: Callable[[Slot], None] | None = None,
    ) -> Iterator[Finished]:
        """Call ``function`` (``module:name``) with ``request`` in a confined child whose directory holds ``files``.

        The child's working directory, HOME and TMPDIR are its slot, where its output is in ``stdout`` and
        ``stderr``. ``poll`` is called about every 25 ms while it runs; when it raises, the run is killed.

        Raises:
            SandboxUnavailable: the zygote cannot be started, or the child could not be confined.
        """
        limits = limits or self.limits
        with self._slot() as slot:
            slot.write(files or {})
            outcome = self._run(slot, function, request, limits, env or {}, poll)
            yield Finished(outcome, slot)

    @contextlib.contextmanager
    def _slot(self) -> Iterator[Slot]:
        with self._lock:
            self._ensure()
            home, descriptor = self._home, self._home_descriptor
        if home is None:
            raise SandboxUnavailable("the sandbox is closed")
        name = f"slot-{next(self._numbers)}"
        os.mkdir(name, 0o700, dir_fd=descriptor)
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
        try:
            yield Slot(home / name, opened)
        finally:
            os.close(opened)
            tree.remove(descriptor, name)

    def _run(
        self,
        slot: Slot,
        function: str,
        request: Mapping[str, JsonValue],
        limits: Limits,
        env: Mapping[str, str],
        poll: Callable[[Slot], None] | None,
    ) -> Outcome:
        order = {
            "function": function,
            "request": request,
            "slot": str(slot.path),
            "env": dict(env),
            "uid": None,
            "cgroups": [],
            "rlimits": {
                "cpu_s": limits.cpu_s,
                "memory": limits.memory,
                "file": limits.file,
                "open_files": limits.open_files,
                "processes": None,
            },
        }
        began = time.monotonic()
        with self._connect(order) as connection:
            return Watcher(connection, slot, limits, began, poll).watch()

    @contextlib.contextmanager
    def _connect(self, order: Mapping[str, object]) -> Iterator[socket.socket]:
        """Hand the order to the zygote; the connection given is this run's own."""
        mine, theirs = socket.socketpair()
        with mine, theirs, os.fdopen(os.memfd_create("order"), "w+b") as file:
            file.write(json.dumps(order).encode())
            file.flush()
            file.seek(0)
            with self._lock:
                for last in (False, True):
                    control = self._ensure()
                    try:
                        wire.send_descriptors(control, theirs.fileno(), file.fileno())
                        break
                    except ConnectionError:
                        self._stop()
                        if last:
                            raise
            theirs.close()
            yield mine

    def _ensure(self) -> socket.socket:
        """The control connection of a running zygote; the lock is held."""
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        self._stop()
        if self._home is None:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._home = self.directory.resolve() / f"{self.spec.name}-{secrets.token_hex(8)}"
            self._home.mkdir(0o700)
            self._home_descriptor = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY)
        self._control, self._process = self._spawn(self._home)
        return self._control

    def _spawn(self, home: Path) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        mine, theirs = socket.socketpair()
        warm = home / "warm"
        warm.mkdir(exist_ok=True)
        environment = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(warm),
            "TMPDIR": str(warm),
            "PYTHONPATH": str(Path(pipelines.__path__[0]).parent),
            "PYTHONHASHSEED": "0",
        }
        with theirs, (home / "zygote.log").open("wb") as log:
            process = subprocess.Popen(
                [self.spec.python, "-P", "-s", "-m", "pipelines.sandbox.zygote", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=warm,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        setup = {
            "preload": self.spec.preload,
            "path": [str(path) for path in self.spec.path],
            "warm": str(warm),
        }
        wire.send(mine, setup)
        mine.settimeout(_WARM_S)
        try:
            answer = wire.Lines(mine).first()
        except (EOFError, OSError) as error:
            process.kill()
            process.wait()
            tail = (home / "zygote.log").read_bytes()[-2000:].decode(errors="replace")
            raise SandboxUnavailable(f"the zygote {self.spec.name} did not start: {error}\n{tail}") from error
        mine.settimeout(None)
        if "error" in answer:
            process.wait()
            raise SandboxUnavailable(f"the zygote {self.spec.name} did not start: {answer['error']}")
        return mine, process

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
