"""The life of a job that makes an addendum: queued, claimed, done, failed, or put back when its worker died.

The queue carries its id after ``PREFIX``; the database says what has to be done.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, and_, delete, or_, select, update
from sqlalchemy.orm import Session

from app import event_log, jobs
from app.ids import new_permalink
from app.models import AddendumJob, Event, Trace
from pipelines.triton_path.spec import CompileSpec

PREFIX = "addendum:"
MAX_ATTEMPTS = 2

Kind = Literal["llvm-passes", "pass-times"]
BUSY = ("queued", "running")


@dataclass(frozen=True)
class Work:
    """A claimed job: which trace's input is compiled again, and for what."""

    id: str
    trace_id: str
    content: str
    kind: Kind
    claim: str
    spec: CompileSpec


def find(session: Session, content: str, kind: Kind) -> AddendumJob | None:
    """Return the job of a content's addendum, whatever became of it."""
    rows = select(AddendumJob).where(AddendumJob.content == content, AddendumJob.kind == kind)
    return session.execute(rows).scalar_one_or_none()


def request(session: Session, trace: Trace, kind: Kind) -> AddendumJob:
    """Queue a finished trace's addendum unless that is under way; one that ended is started anew."""
    content = trace.content or ""
    job = find(session, content, kind)
    if job is None:
        job = AddendumJob(trace_id=trace.id, content=content, kind=kind)
        session.add(job)
    elif job.status in BUSY:
        return job
    else:
        # What was told of the last try would end the stream of this one.
        session.execute(delete(Event).where(Event.trace_id == job.trace_id, Event.kind.startswith(f"{kind}:")))
        job.trace_id, job.status, job.message, job.attempts, job.queued_at = trace.id, "queued", None, 0, time.time()
    session.flush()
    event_log.append(session, job.trace_id, f"{kind}:state", status="queued")
    return job


def claim(session: Session, job_id: str, worker: str) -> Work | None:
    """Take a queued job; return None when it is not there or taken already."""
    token = new_permalink()
    taken = session.execute(
        update(AddendumJob)
        .where(AddendumJob.id == job_id, AddendumJob.status == "queued")
        .values(status="running", claim=token, worker=worker, attempts=AddendumJob.attempts + 1)
        .returning(AddendumJob.trace_id, AddendumJob.content, AddendumJob.kind)
    ).one_or_none()
    if taken is None:
        return None
    trace = session.get_one(Trace, taken.trace_id)
    event_log.append(session, trace.id, f"{taken.kind}:state", status="running")
    spec = jobs.spec_of(session, trace.group_id or "", trace.spec or {})
    return Work(job_id, trace.id, taken.content, taken.kind, token, spec)


def finish(session: Session, work: Work, message: str | None = None) -> bool:
    """End a running job, as failed where there is a ``message``; return False where the claim was lost."""
    status = "failed" if message else "done"
    done = session.execute(
        update(AddendumJob)
        .where(AddendumJob.id == work.id, AddendumJob.status == "running", AddendumJob.claim == work.claim)
        .values(status=status, message=message, finished=time.time())
        .returning(AddendumJob.id)
    ).one_or_none()
    if done is not None:
        event_log.append(session, work.trace_id, f"{work.kind}:done", status=status, message=message)
    return done is not None


def put_back(session: Session, work: Work) -> None:
    """Queue a running job again that its worker had to leave; the attempt does not count."""
    session.execute(
        update(AddendumJob)
        .where(AddendumJob.id == work.id, AddendumJob.status == "running", AddendumJob.claim == work.claim)
        .values(status="queued", claim=None, worker=None, queued_at=time.time(), attempts=AddendumJob.attempts - 1)
    )


def release(session: Session, alive: Sequence[str]) -> list[str]:
    """Put back what no living worker is running, or fail it after ``MAX_ATTEMPTS``; return what to send."""
    return _release(session, or_(AddendumJob.worker.is_(None), AddendumJob.worker.not_in(alive)))


def release_lost(session: Session, worker: str, running: Collection[str]) -> list[str]:
    """Do the same with what a living worker is said to run but does not: it could not write how that ended."""
    return _release(session, and_(AddendumJob.worker == worker, AddendumJob.id.not_in(running)))


def _release(session: Session, which: ColumnElement[bool]) -> list[str]:
    back = []
    for job in session.execute(select(AddendumJob).where(AddendumJob.status == "running", which)).scalars():
        job.claim = job.worker = None
        if job.attempts < MAX_ATTEMPTS:
            job.status, job.queued_at = "queued", time.time()
            back.append(PREFIX + job.id)
        else:
            job.status, job.message = "failed", "The compile worker died while it compiled this once more."
            event_log.append(session, job.trace_id, f"{job.kind}:done", status="failed", message=job.message)
    return back


def waiting(session: Session, *, older_than: float) -> list[str]:
    """Return what to send for jobs queued before a moment: their messages may be lost."""
    rows = select(AddendumJob.id).where(AddendumJob.status == "queued", AddendumJob.queued_at <= older_than)
    return [PREFIX + job for job in session.execute(rows.order_by(AddendumJob.queued_at)).scalars()]
