"""Runs one addendum job: compile the trace's input again, check, store what comes out."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy import func, select
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app import added, addendum_jobs
from app.addendum_jobs import Work
from app.errors import words
from app.event_log import EventBatch
from app.models import AddendumRow
from app.services import Services
from pipelines.addedfile import canonical
from pipelines.addenda import Addendum, LlvmPasses
from pipelines.sandbox import SandboxUnavailable
from pipelines.trace import TraceError, digest
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.llvm_passes import NotAttachedError, print_passes
from pipelines.triton_path.options import OptionError
from pipelines.triton_path.pass_times import time_passes
from pipelines.triton_path.spec import Event

log = logging.getLogger(__name__)


class AbandonedError(Exception):
    """Nobody wants the result any more."""


class AddendumRunner:
    """Makes addenda for one worker process; ``run`` may be called from several threads, and twice for one job."""

    def __init__(self, services: Services, compiler: Compiler, worker: str, batch: EventBatch) -> None:
        self._services = services
        self._compiler = compiler
        self._worker = worker
        self._batch = batch
        self._running: dict[str, Work] = {}
        self._idle = threading.Condition()
        self._stopping = self._abandoned = False

    def run(self, job_id: str) -> None:
        """Make a queued addendum; return at once where somebody else took it or this worker stops."""
        with self._idle:
            if self._stopping:
                return
            with self._services.database.write() as session:
                work = addendum_jobs.claim(session, job_id, self._worker)
            if work is None:
                return
            self._running[job_id] = work
        try:
            self._run(work)
        finally:
            with self._idle:
                del self._running[job_id]
                self._idle.notify_all()

    def put_back_lost(self) -> list[str]:
        """Put back what this worker is said to run but does not; return what to send."""
        with self._idle, self._services.database.write() as session:
            return addendum_jobs.release_lost(session, self._worker, list(self._running))

    def abandon(self) -> None:
        """Take no more jobs and let nothing that runs now be stored."""
        self._stopping = self._abandoned = True

    def stop(self, grace: float) -> None:
        """Take no more jobs, give the running ones ``grace`` seconds, and put back those that need longer."""
        with self._idle:
            self._stopping = True
            self._idle.wait_for(lambda: not self._running, grace)
            unfinished = list(self._running.values())
        for work in unfinished:
            self._put_back(work)

    def _put_back(self, work: Work) -> None:
        with self._services.database.write() as session:
            addendum_jobs.put_back(session, work)

    def _run(self, work: Work) -> None:
        try:
            make = _llvm_passes if work.kind == "llvm-passes" else _pass_times
            addendum = make(self._services, self._compiler, work, lambda event: self._on_event(work, event))
            message = None
        except (NotAttachedError, OptionError) as error:
            addendum, message = None, str(error)
        except Exception as error:  # every job ends, also by a fault of ours
            if self._stopping:  # its compiler was closed
                log.info("the %s of %s ended with its worker", work.kind, work.trace_id)
                self._put_back(work)
                return
            if not isinstance(error, SandboxUnavailable | OSError | OperationalError | TraceError):
                log.exception("making the %s of %s failed", work.kind, work.trace_id)
            addendum, message = None, f"Loupe could not compile this once more or store it: {words(error)}."
        self._batch.flush()
        with self._services.database.write() as session:
            if addendum_jobs.finish(session, work, message) and addendum is not None:
                _keep(session, work.content, addendum)

    def _on_event(self, work: Work, event: Event) -> None:
        if self._abandoned:
            raise AbandonedError
        self._batch.add(work.trace_id, f"{work.kind}:{event.kind}", dict(event.data))


def _llvm_passes(
    services: Services, compiler: Compiler, work: Work, on_event: Callable[[Event], None]
) -> Addendum | None:
    printed = print_passes(compiler, work.spec, services.blobs.open(work.content), on_event)
    name = digest(canonical(printed.added))
    services.added.put(name, printed.file)
    # The page shows what each pass changed as soon as it shows the passes.
    services.analyses.added_summary(work.content, name)
    return LlvmPasses(revision=1, file=name)


def _pass_times(
    services: Services, compiler: Compiler, work: Work, on_event: Callable[[Event], None]
) -> Addendum | None:
    return time_passes(compiler, work.spec, services.blobs.open(work.content).manifest, on_event)


def _keep(session: Session, content: str, addendum: Addendum) -> None:
    """Store an addendum as its kind's next revision, unless the newest says the same."""
    newest = added.latest(session, content, addendum.kind)
    if newest is not None and newest == addendum.model_copy(update={"revision": newest.revision}):
        return
    rows = select(func.max(AddendumRow.revision)).where(
        AddendumRow.content == content, AddendumRow.kind == addendum.kind
    )
    revision = (session.execute(rows).scalar() or 0) + 1
    values = {
        "content": content,
        "kind": addendum.kind,
        "revision": revision,
        "data": addendum.model_copy(update={"revision": revision}).model_dump(mode="json"),
        "created": time.time(),
    }
    session.execute(upsert(AddendumRow).values(values).on_conflict_do_nothing())
