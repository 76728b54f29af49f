"""Compiling without a server: a warm compiler of this process's own, over the same home."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from sqlalchemy import delete, select

from app import replies, workers
from app.config import Settings
from app.models import FINAL, Event, Trace
from app.runner import Runner
from app.services import Services
from app.submissions import CompileRequest, Submission, submit
from pipelines.triton_path.compile import Compiler

THREADS = 2
POLL_SECONDS = 0.05


class LocalCompiler:
    """Submits to a home and compiles there and then.

    A running server of the same home may take some of the jobs; that only helps.
    """

    def __init__(self, services: Services, runner: Runner) -> None:
        self.services = services
        self._runner = runner

    def compile(self, request: CompileRequest) -> tuple[str, list[Trace]]:
        """Compile all targets and launches; return the group's id and its finished traces.

        Raises:
            ApiError: a request that cannot be compiled as it is.
        """
        with self.services.database.write() as session:
            made = submit(session, self.services.blobs, request)
        try:
            while waiting := self._unfinished(made):
                with ThreadPoolExecutor(THREADS) as pool:
                    list(pool.map(self._runner.run, waiting))
                if self._unfinished(made) == waiting:
                    time.sleep(POLL_SECONDS)  # another worker has them
        except KeyboardInterrupt:
            self._drop(made)
            raise
        with self.services.database.read() as session:
            return made.group, replies.get_group(session, made.group)[1]

    def _unfinished(self, made: Submission) -> list[str]:
        with self.services.database.read() as session:
            rows = select(Trace.id).where(Trace.group_id == made.group, Trace.status.not_in(FINAL))
            return list(session.execute(rows.order_by(Trace.created)).scalars())

    def _drop(self, made: Submission) -> None:
        """Forget what was interrupted, so that no server compiles it later."""
        waiting = self._unfinished(made)
        with self.services.database.write() as session:
            session.execute(delete(Event).where(Event.trace_id.in_(waiting)))
            session.execute(delete(Trace).where(Trace.id.in_(waiting)))


@contextmanager
def local_compiler(settings: Settings) -> Iterator[LocalCompiler]:
    """Start a compiler and register this process as a worker of the home.

    Raises:
        SandboxUnavailable: this machine cannot confine code.
    """
    services = Services.open(settings)
    with services.database.write() as session:
        worker = workers.register(session, "cli")
    compiler = Compiler(settings.slots, trust_code=settings.trust_code)
    runner = Runner(services, compiler, worker)
    try:
        compiler.start()
        with services.database.write() as session:
            workers.report(session, worker, "ready", facts=workers.facts_of(compiler))
        yield LocalCompiler(services, runner)
    finally:
        runner.stop(0.0)
        compiler.close()
        with services.database.write() as session:
            workers.retire(session, worker)
        services.close()
