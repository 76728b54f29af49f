"""The life of a trace's job in the database: queued, claimed, finished, or put back when its worker died.

Every change is guarded by the claim, so a job that two workers run is finished by one of them only.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, or_, select, update
from sqlalchemy.orm import Session

from app import event_log
from app.ids import new_permalink
from app.models import FINAL, AddendumJob, Event, Group, Trace
from pipelines.trace import Failure
from pipelines.triton_path.spec import CompileSpec, LaunchFound

MAX_ATTEMPTS = 3
EVENTS_KEPT_SECONDS = 3600


@dataclass(frozen=True)
class Job:
    """A claimed trace and what to compile for it."""

    trace_id: str
    group_id: str
    team: str
    claim: str
    spec: CompileSpec
    compile_key: str | None


@dataclass(frozen=True)
class Result:
    """What a finished job leaves in its row; ``content`` None goes with a ``failure`` that has no trace."""

    status: str
    content: str | None
    kernel: str | None
    compile_key: str | None = None
    cacheable: bool = False
    cached: bool = False
    failure: Failure | None = None


def claim(session: Session, trace_id: str, worker: str) -> Job | None:
    """Take a queued trace; return None when it is not there or taken already."""
    token = new_permalink()
    taken = session.execute(
        update(Trace)
        .where(Trace.id == trace_id, Trace.status == "queued")
        .values(status="running", claim=token, worker=worker, claimed_at=time.time(), attempts=Trace.attempts + 1)
        .returning(Trace.group_id, Trace.team, Trace.spec, Trace.compile_key)
    ).one_or_none()
    if taken is None:
        return None
    event_log.append(session, trace_id, "state", status="running")
    spec = spec_of(session, taken.group_id, taken.spec)
    return Job(trace_id, taken.group_id, taken.team, token, spec, taken.compile_key)


def spec_of(session: Session, group_id: str, spec: dict[str, Any]) -> CompileSpec:
    """Return what a trace of a group was compiled from; its texts are kept once, in the group."""
    request = session.execute(select(Group.request).where(Group.id == group_id)).scalar_one()
    texts = {"source": request["source"], "files": request.get("files") or {}}
    return CompileSpec.model_validate({**spec, **texts})


def show_interim(session: Session, job: Job, content: str, kernel: str) -> bool:
    """Point a running trace at what is there before SASS; return False where the claim was lost."""
    shown = session.execute(
        update(Trace)
        .where(Trace.id == job.trace_id, Trace.status == "running", Trace.claim == job.claim)
        .values(content=content, kernel=kernel)
        .returning(Trace.id)
    ).one_or_none()
    if shown is not None:
        event_log.append(session, job.trace_id, "passes-ready")
    return shown is not None


def name_launch(session: Session, job: Job, launch: LaunchFound) -> None:
    """Say in the row which kernel and config a running trace compiles, once its launch code told."""
    session.execute(
        update(Trace)
        .where(Trace.id == job.trace_id, Trace.status == "running", Trace.claim == job.claim)
        .values(kernel=launch.kernel, config=launch.config)
    )


def shown(session: Session) -> set[str]:
    """Return all contents that a permalink shows."""
    return {content for content in session.execute(select(Trace.content).distinct()).scalars() if content}


def finish(session: Session, job: Job, result: Result) -> bool:
    """Fill a running trace for good; return False where the claim was lost."""
    done = session.execute(
        update(Trace)
        .where(Trace.id == job.trace_id, Trace.status == "running", Trace.claim == job.claim)
        .values(
            status=result.status,
            content=result.content,
            kernel=result.kernel,
            compile_key=result.compile_key,
            cacheable=result.cacheable,
            cached=result.cached,
            failure=result.failure.model_dump(mode="json") if result.failure else None,
            finished=time.time(),
        )
        .returning(Trace.id)
    ).one_or_none()
    if done is not None:
        event_log.append(session, job.trace_id, "done", status=result.status)
    return done is not None


def put_back(session: Session, trace_id: str, claim_token: str | None, *, count: bool) -> bool:
    """Queue a running trace again; ``count`` says whether the attempt counts against ``MAX_ATTEMPTS``."""
    values: dict[str, Any] = {
        "status": "queued",
        "content": None,
        "claim": None,
        "worker": None,
        "claimed_at": None,
        "queued_at": time.time(),
    }
    if not count:
        values["attempts"] = Trace.attempts - 1
    back = session.execute(
        update(Trace)
        .where(Trace.id == trace_id, Trace.status == "running", Trace.claim == claim_token)
        .values(**values)
        .returning(Trace.id)
    ).one_or_none()
    if back is not None:
        event_log.append(session, trace_id, "state", status="queued")
    return back is not None


def release(session: Session, alive: Sequence[str]) -> list[str]:
    """Put back what no living worker is running, or fail it after ``MAX_ATTEMPTS``; return the ids put back."""
    return _release(session, or_(Trace.worker.is_(None), Trace.worker.not_in(alive)))


def release_lost(session: Session, worker: str, running: Collection[str]) -> list[str]:
    """Do the same with what a living worker is said to run but does not: it could not write how that ended."""
    return _release(session, and_(Trace.worker == worker, Trace.id.not_in(running)))


def _release(session: Session, which: ColumnElement[bool]) -> list[str]:
    rows = select(Trace.id, Trace.claim, Trace.attempts).where(Trace.status == "running", which)
    back = []
    for trace_id, token, attempts in session.execute(rows).all():
        if attempts < MAX_ATTEMPTS:
            put_back(session, trace_id, token, count=True)
            back.append(trace_id)
        else:
            _give_up(session, trace_id, token)
    return back


def waiting(session: Session, *, older_than: float) -> list[str]:
    """Return traces queued before a moment, oldest first: their messages may be lost."""
    rows = select(Trace.id).where(Trace.status == "queued", Trace.queued_at <= older_than).order_by(Trace.queued_at)
    return list(session.execute(rows).scalars())


def drop_old_events(session: Session) -> None:
    """Delete the events of traces that finished more than ``EVENTS_KEPT_SECONDS`` ago and get no addendum now."""
    old = select(Trace.id).where(Trace.status.in_(FINAL), Trace.finished < time.time() - EVENTS_KEPT_SECONDS)
    busy = select(AddendumJob.trace_id).where(AddendumJob.status.in_(("queued", "running")))
    session.execute(delete(Event).where(Event.trace_id.in_(old), Event.trace_id.not_in(busy)))


def _give_up(session: Session, trace_id: str, token: str | None) -> None:
    failure = Failure(
        kind="abort",
        stage=None,
        address=None,
        message=f"The compile worker died {MAX_ATTEMPTS} times while it compiled this kernel.",
        hint="Submit it again; if the worker dies again, the server's log says how.",
    )
    session.execute(
        update(Trace)
        .where(Trace.id == trace_id, Trace.status == "running", Trace.claim == token)
        .values(status="failed", content=None, failure=failure.model_dump(mode="json"), finished=time.time())
    )
    event_log.append(session, trace_id, "done", status="failed")
