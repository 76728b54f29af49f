"""Compiling without a server: a warm compiler of this process's own, over the same home."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress

from sqlalchemy import delete, select

from app import added, addenda, addendum_jobs, compiles, replies, workers
from app.added import LlvmPassesReply, PassTimesReply
from app.addendum_jobs import Kind
from app.config import Settings
from app.errors import ApiError
from app.models import FINAL, AddendumJob, Event, Trace
from app.processes import Signals, owner_only
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

    def __init__(self, services: Services, runner: Runner, compiler: Compiler, worker: str, signals: Signals) -> None:
        self.services = services
        self._runner = runner
        self._compiler = compiler
        self._worker = worker
        self._signals = signals

    def compile(self, request: CompileRequest) -> tuple[str, list[Trace]]:
        """Compile all targets and launches; return the group's id and its finished traces.

        Raises:
            ApiError: a request that cannot be compiled as it is.
            Interrupted: SIGINT or SIGTERM came; what was not finished is forgotten.
        """
        with self.services.database.write() as session:
            compiles.check(request, workers.facts(session))
            made = submit(session, self.services.blobs, request)
        self._do_all(lambda: self._unfinished(made), lambda: self._drop(made))
        with self.services.database.read() as session:
            return made.group, replies.get_group(session, made.group)[1]

    def add(self, trace_id: str, kind: Kind) -> LlvmPassesReply | PassTimesReply:
        """Add LLVM's passes or pass times to a finished trace; return what is there then, or why it is not.

        Raises:
            Interrupted: SIGINT or SIGTERM came.
        """
        with suppress(ApiError):  # the reply says why it cannot be had
            addenda.request(self.services, trace_id, kind)
            self._do_all(lambda: self._unmade(trace_id, kind), lambda: self._forget(trace_id, kind))
        tell = added.pass_times if kind == "pass-times" else added.llvm_passes
        with self.services.database.read() as session:
            return tell(self.services, session, replies.get_trace(session, trace_id))

    def _unmade(self, trace_id: str, kind: Kind) -> list[str]:
        with self.services.database.read() as session:
            content = replies.get_trace(session, trace_id).content or ""
            job = addendum_jobs.find(session, content, kind)
        return [addendum_jobs.PREFIX + job.id] if job and job.status in addendum_jobs.BUSY else []

    def _forget(self, trace_id: str, kind: Kind) -> None:
        """Forget what was interrupted, so that no server makes it later."""
        with self.services.database.write() as session:
            mine = AddendumJob.trace_id == trace_id, AddendumJob.kind == kind
            session.execute(delete(AddendumJob).where(*mine, AddendumJob.status.in_(addendum_jobs.BUSY)))

    def _do_all(self, waiting: Callable[[], list[str]], drop: Callable[[], None]) -> None:
        """Do what ``waiting`` names until it names nothing; ``drop`` it where a signal comes."""
        pool = ThreadPoolExecutor(THREADS)
        try:
            self._do_in(pool, waiting)
        except BaseException:  # a signal too must leave nothing running; it is raised again
            self._runner.abandon()
            self._compiler.close()
            pool.shutdown(wait=False, cancel_futures=True)
            drop()
            raise
        pool.shutdown()

    def _do_in(self, pool: ThreadPoolExecutor, unfinished: Callable[[], list[str]]) -> None:
        while waiting := unfinished():
            running = {pool.submit(self._runner.run, message) for message in waiting}
            while running:
                with self._signals.interruptible():
                    done, running = wait(running, timeout=workers.HEARTBEAT_SECONDS)
                for future in done:
                    future.result()
                with self.services.database.write() as session:
                    workers.beat(session, self._worker)
            if unfinished() == waiting:
                with self._signals.interruptible():
                    time.sleep(POLL_SECONDS)  # another worker has them

    def _unfinished(self, made: Submission) -> list[str]:
        with self.services.database.read() as session:
            rows = select(Trace.id).where(Trace.group_id == made.group, Trace.status.not_in(FINAL))
            return list(session.execute(rows.order_by(Trace.created)).scalars())

    def _drop(self, made: Submission) -> None:
        """Forget what was interrupted, so that no server compiles it later."""
        waiting = self._unfinished(made)
        with self.services.database.write() as session:
            session.execute(delete(Event).where(Event.trace_id.in_(waiting)))
            session.execute(delete(Trace).where(Trace.id.in_(waiting), Trace.status.not_in(FINAL)))


@contextmanager
def local_compiler(settings: Settings) -> Iterator[LocalCompiler]:
    """Start a compiler and register this process as a worker of the home.

    Raises:
        SandboxUnavailable: this machine cannot confine code.
        Interrupted: SIGINT or SIGTERM came.
    """
    with owner_only(), Signals().caught() as signals:
        services = Services.open(settings)
        with services.database.write() as session:
            worker = workers.register(session, "cli")
        compiler = Compiler(settings.sandbox, trust_code=settings.trust_code)
        runner = Runner(services, compiler, worker)
        try:
            with signals.interruptible():
                compiler.start()
            with services.database.write() as session:
                workers.report(session, worker, "ready", facts=workers.facts_of(compiler))
            yield LocalCompiler(services, runner, compiler, worker, signals)
        finally:
            runner.stop(0.0)
            compiler.close()
            with services.database.write() as session:
                workers.retire(session, worker)
            services.close()
