"""The sandbox as its callers see it: start a zygote, run functions in confined children, read what they left."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pipelines.sandbox import plan
from pipelines.sandbox.bounds import Bound
from pipelines.sandbox.execute import Poll, execute
from pipelines.sandbox.home import Home
from pipelines.sandbox.model import Confinement, Limits, Outcome, SandboxUnavailable, ZygoteSpec
from pipelines.sandbox.slot import Slot
from pipelines.sandbox.spawn import ZygoteProcess

if TYPE_CHECKING:
    from pydantic import JsonValue  # a zygote's Python may lack it, and imports this package


@dataclass(frozen=True)
class Finished:
    """A run that has ended: how, and its directory, which is there until the context is left."""

    outcome: Outcome
    slot: Slot


class Sandbox:
    """Runs functions of one preload module in confined children of one zygote.

    Usable from several threads at once; as a context manager it closes itself. A zygote does not
    outlive the process that started it, and a forked copy of that process starts one of its own.
    """

    def __init__(
        self, spec: ZygoteSpec, directory: Path, *, limits: Limits | None = None, trust_code: bool = False
    ) -> None:
        self.spec = spec
        self.limits = limits or Limits()
        self._directory = directory
        self._trust_code = trust_code
        self._lock = threading.RLock()
        self._owner = os.getpid()
        self._closed = False
        self._home: Home | None = None
        self._zygote: ZygoteProcess | None = None
        self._bound: Bound | None = None
        self._confinement: Confinement | None = None

    @property
    def confinement(self) -> Confinement:
        """What is in force; starts the zygote, since only a trial tells.

        Raises:
            SandboxUnavailable: code cannot be confined here, or the zygote does not start.
        """
        self.start()
        if self._confinement is None:
            raise SandboxUnavailable("the sandbox is closed")
        return self._confinement

    @property
    def home(self) -> Path:
        """The directory that holds the slots.

        Raises:
            SandboxUnavailable: the sandbox has not started.
        """
        if self._home is None:
            raise SandboxUnavailable("the sandbox has not started")
        return self._home.path

    @property
    def zygote_pid(self) -> int | None:
        """The process id of the zygote, while one runs."""
        zygote = self._zygote
        return zygote.pid if zygote is not None and zygote.alive else None

    def start(self) -> None:
        """Start the zygote and wait until it is warm; does nothing when it is running.

        Raises:
            SandboxUnavailable: code cannot be confined here, or the zygote does not start.
        """
        self._ready()

    def close(self) -> None:
        """End the zygote and every child, and remove all slots; for good, so that no late run starts them again."""
        with self._lock:
            self._closed = True
            if self._zygote is not None:
                self._zygote.stop()
                self._zygote = None
            if self._bound is not None:
                self._bound.close()
                self._bound = None
            if self._home is not None:
                self._home.close()
                self._home = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def expect(self) -> None:
        """Say that a run is about to come, so that it starts sooner; returns at once."""
        if self._bound is not None:
            threading.Thread(target=self._bound.expect, name="expect", daemon=True).start()

    @contextlib.contextmanager
    def run(
        self,
        function: str,
        request: Mapping[str, JsonValue],
        files: Mapping[str, bytes] | None = None,
        *,
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        poll: Poll | None = None,
    ) -> Iterator[Finished]:
        """Call ``function`` (``module:name``) with ``request`` in a confined child whose directory holds ``files``.

        The child's working directory, HOME and TMPDIR are its slot, where its output is in ``stdout`` and
        ``stderr``. ``poll`` is called about every 10 ms while it runs; when it raises, the run is killed.

        Raises:
            SandboxUnavailable: the zygote cannot be started, or the child could not be confined.
        """
        call = {"function": function, "request": request, "env": dict(env or {})}
        home, _, _ = self._ready()
        with home.slot() as slot:
            slot.write(files or {})
            yield Finished(self._run(call, slot, limits or self.limits, poll), slot)

    def _run(self, call: Mapping[str, object], slot: Slot, limits: Limits, poll: Poll | None) -> Outcome:
        """Run in a child of the zygote, or of its successor if it has ended since it was last asked."""
        _, zygote, bound = self._ready()
        try:
            return execute(zygote, bound, slot, call, limits, poll)
        except ConnectionError:
            zygote.stop()
        _, zygote, bound = self._ready()
        return execute(zygote, bound, slot, call, limits, poll)

    def _ready(self) -> tuple[Home, ZygoteProcess, Bound]:
        """What a run needs, made on first use; a zygote that has ended is replaced."""
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("the sandbox is closed")
            if self._owner != os.getpid():  # this is a forked copy of the owner, which keeps what it has
                self._owner, self._home, self._zygote, self._bound = os.getpid(), None, None, None
            if self._home is None:
                self._home = Home(self._directory)
            if self._zygote is None or not self._zygote.alive or self._bound is None:
                self._zygote, self._bound = self._restart(self._home)
            return self._home, self._zygote, self._bound

    def _restart(self, home: Home) -> tuple[ZygoteProcess, Bound]:
        if self._zygote is not None:
            self._zygote.stop()
            self._zygote = None
        abi = plan.landlock_abi(trust_code=self._trust_code)
        program = plan.filter_program(abi, trust_code=self._trust_code)
        zygote = ZygoteProcess(self.spec, home.path, abi, program)
        try:
            bound = self._bound or plan.choose_bound(zygote, home, trust_code=self._trust_code)
        except BaseException:  # no zygote outlives a failed start; it is raised again
            zygote.stop()
            raise
        self._confinement = plan.describe(abi, program, bound)
        return zygote, bound
