"""Runs one job: claim, compile, store what comes out, and tell about it on the way."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app import event_log, jobs, submissions
from app.addendum_jobs import PREFIX
from app.addendum_runner import AddendumRunner
from app.errors import words
from app.event_log import EventBatch
from app.jobs import Job, Result
from app.models import AddendumRow, Group
from app.processes import be_nice
from app.services import Services
from pipelines import tracefile
from pipelines.addenda import StageTime, Times
from pipelines.sandbox import SandboxUnavailable
from pipelines.trace import Failure
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.options import OptionError
from pipelines.triton_path.spec import Compiled, Event, LaunchFound

log = logging.getLogger(__name__)

TIMES_REVISION = 1
# An interim trace is shown for half a second, and the page waits for it.
INTERIM_LEVEL = 1

RESUBMIT = "Submit it again; if it fails again, the server's log says more."


class _AbandonedError(Exception):
    """Nobody wants the compilation any more."""


@dataclass
class _Running:
    """A job under way: what was stored of it so far."""

    job: Job
    key: str
    interim: Future[str] | None = None
    final: str | None = None
    launches: tuple[LaunchFound, ...] = field(default=())


class Runner:
    """Compiles for one worker process; ``run`` may be called from several threads, and twice for one trace."""

    def __init__(self, services: Services, compiler: Compiler, worker: str) -> None:
        self._services = services
        self._compiler = compiler
        self._worker = worker
        self._batch = EventBatch(services.database)
        self._addenda = AddendumRunner(services, compiler, worker, self._batch)
        # Storing the interim trace runs beside the disassembly; summarizing it must not slow down either.
        self._beside = ThreadPoolExecutor(max_workers=2, thread_name_prefix="store")
        self._later = ThreadPoolExecutor(max_workers=1, thread_name_prefix="summary", initializer=be_nice)
        self._running: dict[str, Job] = {}
        self._idle = threading.Condition()
        self._stopping = False
        self._abandoned = False

    def run(self, message: str) -> None:
        """Do what a message of the queue asks for: compile a trace, by its id, or make an addendum.

        Returns at once where somebody else took it or this worker stops.
        """
        if message.startswith(PREFIX):
            self._addenda.run(message.removeprefix(PREFIX))
        else:
            self._run_trace(message)

    def _run_trace(self, trace_id: str) -> None:
        with self._idle:
            if self._stopping:
                return
            self._compiler.expect()
            with self._services.database.write() as session:
                job = jobs.claim(session, trace_id, self._worker)
            if job is None:
                return
            self._running[trace_id] = job
        try:
            self._run(job)
        finally:
            with self._idle:
                del self._running[trace_id]
                self._idle.notify_all()

    def put_back_lost(self) -> list[str]:
        """Put back what the database says that this worker runs, but whose end could not be written.

        Returns the messages to send again.
        """
        with self._idle, self._services.database.write() as session:
            lost = jobs.release_lost(session, self._worker, list(self._running))
        return lost + self._addenda.put_back_lost()

    def abandon(self) -> None:
        """Take no more jobs and let nothing that runs now be stored: its compiler is about to be closed."""
        self._stopping = self._abandoned = True
        self._addenda.abandon()

    def stop(self, grace: float) -> None:
        """Take no more jobs, give the running ones ``grace`` seconds, and put back those that need longer."""
        with self._idle:
            self._stopping = True
            self._idle.wait_for(lambda: not self._running, grace)
            unfinished = list(self._running.values())
        with self._services.database.write() as session:
            for job in unfinished:
                jobs.put_back(session, job.trace_id, job.claim, count=False)
        self._addenda.stop(0.0 if unfinished else grace)
        self._beside.shutdown(wait=not unfinished)
        self._later.shutdown(wait=not unfinished, cancel_futures=True)
        self._batch.close()

    def _run(self, job: Job) -> None:
        running = _Running(job, job.spec.compile_key(self._compiler.toolchain))
        try:
            if not self._use_known(running):
                compiled = self._compiler.compile(job.spec, lambda event: self._on_event(running, event))
                self._store(running, compiled)
        except OptionError as error:
            self._fail(running, "error", str(error))
        except Exception as error:  # every job ends, also by a fault of ours
            if self._stopping:  # its compiler was closed, and the job goes back to the queue
                log.info("%s ended with its worker", job.trace_id)
            elif isinstance(error, SandboxUnavailable | OSError | OperationalError):
                log.error("compiling %s failed: %s", job.trace_id, error)
                self._fail(running, "abort", f"Loupe could not compile or store this kernel: {words(error)}.", RESUBMIT)
            else:
                log.exception("compiling %s failed", job.trace_id)
                self._fail(running, "abort", "Loupe itself failed while it compiled this kernel.", RESUBMIT)

    def _use_known(self, running: _Running) -> bool:
        """Finish from a stored result that was not known when the trace was submitted."""
        job = running.job
        with self._services.database.write() as session:
            if submissions.is_fresh(session.get_one(Group, job.group_id)):
                return False
            known = submissions.lookup(session, self._services.blobs, job.team, running.key)
            if known is None:
                return False
            found = tuple(submissions.launches(session, job.team, running.key))
            sent = self._add_siblings(session, job, found)
            jobs.finish(session, job, Result(known.status, known.content, known.kernel, running.key, cached=True))
        self._send(sent)
        return True

    def _on_event(self, running: _Running, event: Event) -> None:
        if self._abandoned:
            raise _AbandonedError
        if event.kind == "launches":
            found = tuple(LaunchFound.model_validate(item, strict=False) for item in _list(event.data.get("launches")))
            self._take_launches(running, found)
        elif event.interim is not None:
            running.interim = self._beside.submit(self._show_interim, running, event.interim)
        else:
            self._batch.add(running.job.trace_id, event.kind, dict(event.data))

    def _take_launches(self, running: _Running, found: tuple[LaunchFound, ...]) -> None:
        if running.launches or running.job.spec.launch != 0 or not found:
            return
        running.launches = found
        with self._services.database.write() as session:
            jobs.name_launch(session, running.job, found[0])
            sent = self._add_siblings(session, running.job, found)
        self._send(sent)

    def _add_siblings(self, session: Session, job: Job, found: tuple[LaunchFound, ...]) -> list[str]:
        group = session.get_one(Group, job.group_id)
        if len(found) < 2 or job.spec.launch != 0:
            return []
        added = submissions.add_siblings(
            session, self._services.blobs, group, job.spec, found, self._compiler.toolchain
        )
        if added:
            event_log.append(session, job.trace_id, "group", traces=[trace.id for trace in added])
        return [trace.id for trace in added if trace.status == "queued"]

    def _send(self, traces: list[str]) -> None:
        for trace_id in traces:
            self._services.queue.send(trace_id)

    def _show_interim(self, running: _Running, compiled: Compiled) -> str:
        content = self._keep(compiled, final=False)
        self._batch.flush()
        with self._services.database.write() as session:
            jobs.show_interim(session, running.job, content, compiled.manifest.kernel.name)
        self._later.submit(self._summarize, running, content)
        return content

    def _summarize(self, running: _Running, interim: str) -> None:
        """Have the summary ready before somebody asks for it; nothing waits for this."""
        try:
            self._services.analyses.summary(interim)
            if running.final:
                self._services.analyses.extend_summary(interim, running.final)
            else:
                self._batch.add(running.job.trace_id, "summary", {})
        except Exception:  # nobody waits for the result, so the log is the only place to tell
            log.exception("summarizing %s failed", running.job.trace_id)

    def _keep(self, compiled: Compiled, *, final: bool) -> str:
        content = compiled.manifest.content
        data = tracefile.write(compiled.manifest, compiled.blobs, level=tracefile.LEVEL if final else INTERIM_LEVEL)
        self._services.blobs.put(content, data, durable=final)
        return content

    def _store(self, running: _Running, compiled: Compiled) -> None:
        if self._abandoned:
            return
        job, manifest = running.job, compiled.manifest
        content = self._keep(compiled, final=True)
        interim = running.interim.result() if running.interim else None
        running.final = content
        if interim and interim != content:
            self._services.analyses.extend_summary(interim, content)
        self._take_launches(running, compiled.launches)
        self._batch.flush()
        name = manifest.kernel.name or None
        result = Result(manifest.status, content, name, running.key, cacheable=compiled.cacheable)
        with self._services.database.write() as session:
            if compiled.times:
                keep_times(session, content, compiled.times)
            if compiled.cacheable and job.spec.launch == 0 and compiled.launches:
                submissions.keep_launches(session, job.team, running.key, compiled.launches)
            jobs.finish(session, job, result)

    def _fail(self, running: _Running, kind: Literal["error", "abort"], message: str, hint: str | None = None) -> None:
        failure = Failure(kind=kind, stage=None, address=None, message=message, hint=hint)
        self._batch.flush()
        result = Result("failed", None, running.job.spec.kernel, running.key, failure=failure)
        with self._services.database.write() as session:
            jobs.finish(session, running.job, result)


def keep_times(session: Session, content: str, times: tuple[StageTime, ...]) -> None:
    """Keep a compilation's times beside its trace, unless times are known."""
    addendum = Times(revision=TIMES_REVISION, times=times)
    values = {
        "content": content,
        "kind": addendum.kind,
        "revision": addendum.revision,
        "data": addendum.model_dump(mode="json"),
        "created": time.time(),
    }
    session.execute(upsert(AddendumRow).values(values).on_conflict_do_nothing())


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
