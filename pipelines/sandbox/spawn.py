"""One zygote process, seen from the process that started it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pipelines
from pipelines.sandbox import elf, wire
from pipelines.sandbox.model import SandboxUnavailable, ZygoteSpec

LOG = "zygote.log"
_WARM_S = 180.0
_END_S = 10.0
_LOG_TAIL = 2000


class ZygoteProcess:
    """A running zygote, warm and ready to fork."""

    def __init__(self, spec: ZygoteSpec, home: Path, landlock: int, program: bytes | None) -> None:
        """Start it below ``home`` and wait until it is warm.

        Raises:
            SandboxUnavailable: it does not start; the message holds what it said.
        """
        self.spec = spec
        self.control, theirs = socket.socketpair()
        with theirs:
            self._process = self._start(home, theirs)
        setup = {
            "preload": spec.preload,
            "path": [str(path) for path in spec.path],
            "home": str(home),
            "landlock": landlock,
            "seccomp": base64.b64encode(program).decode() if program else None,
            "readable": [str(path.resolve()) for path in spec.read_only],
            "executables": [str(path) for path in elf.with_interpreters(spec.executables)],
        }
        self.readable: list[str] = self._await(setup, home)

    def _start(self, home: Path, control: socket.socket) -> subprocess.Popen[bytes]:
        warm = home / "warm"
        warm.mkdir(exist_ok=True)
        environment = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(warm),
            "TMPDIR": str(warm),
            "PYTHONPATH": str(Path(pipelines.__path__[0]).parent),
            "OPENBLAS_NUM_THREADS": "1",  # NumPy and torch would start threads when they are imported
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",  # the same input must give the same trace in every zygote
        }
        with (home / LOG).open("wb") as log:
            return subprocess.Popen(
                [self.spec.python, "-P", "-s", "-m", "pipelines.sandbox.zygote", str(control.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=warm,
                pass_fds=[control.fileno()],
                start_new_session=True,  # a Ctrl+C in the terminal is the server's to handle
            )

    def _await(self, setup: Mapping[str, object], home: Path) -> list[str]:
        self.control.settimeout(_WARM_S)
        try:
            wire.send(self.control, dict(setup))
            answer = wire.Lines(self.control).first()
        except (EOFError, OSError) as error:
            self.stop()
            tail = (home / LOG).read_bytes()[-_LOG_TAIL:].decode(errors="replace")
            raise SandboxUnavailable(f"the zygote {self.spec.name} did not start: {error}\n{tail}") from error
        if "error" in answer:
            self.stop()
            raise SandboxUnavailable(f"the zygote {self.spec.name} did not start: {answer['error']}")
        self.control.settimeout(None)
        readable: list[str] = answer["readable"]
        return readable

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The zygote's process id."""
        return self._process.pid

    @contextlib.contextmanager
    def connect(self, order: Mapping[str, object]) -> Iterator[socket.socket]:
        """Ask for a child; the connection given is that run's own.

        Raises:
            ConnectionError: the zygote has ended.
        """
        mine, theirs = socket.socketpair()
        with mine, theirs, os.fdopen(os.memfd_create("order"), "w+b") as file:
            file.write(json.dumps(order).encode())
            file.flush()
            file.seek(0)
            wire.send_descriptors(self.control, theirs.fileno(), file.fileno())
            theirs.close()
            yield mine

    def stop(self) -> None:
        """End it with all its children; it kills them when the control connection closes."""
        with contextlib.suppress(OSError):
            wire.send_goodbye(self.control)
        self.control.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
