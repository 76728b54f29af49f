"""What was added to finished traces on demand, looked up: LLVM's own passes, and the times of passes."""

from __future__ import annotations

import contextlib
from typing import Any, Literal

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app import addendum_jobs
from app.addendum_jobs import Kind
from app.api import Output
from app.blobs import DamagedError
from app.models import FINAL, AddendumJob, AddendumRow, Trace
from app.services import Services
from pipelines.addedfile import AddedFile, ExtendedTrace
from pipelines.addenda import ADDENDUM, AddedStage, Addendum, LlvmPasses, PassTimes
from pipelines.tracefile import TraceFile


class AddendumReply(Output):
    """How far an addendum is.

    ``absent``: nobody asked for it yet. ``unavailable``: it cannot be had, for the reason in ``message``.
    ``failed``: asking again tries again.
    """

    kind: Kind
    status: Literal["absent", "unavailable", "queued", "running", "done", "failed"]
    message: str | None = None
    events: str | None = None


class LlvmPassesReply(AddendumReply):
    """LLVM's passes of a trace: ``note`` says what is missing of them; ``file`` names what holds their texts."""

    stages: tuple[AddedStage, ...] = ()
    note: str | None = None
    file: str | None = None


class PassTimesReply(AddendumReply):
    """The times of a trace's passes."""

    times: PassTimes | None = None


def latest(session: Session, content: str, kind: str) -> Addendum | None:
    """Return a content's newest addendum of a kind."""
    rows = select(AddendumRow.data).where(AddendumRow.content == content, AddendumRow.kind == kind)
    data = session.execute(rows.order_by(AddendumRow.revision.desc()).limit(1)).scalar_one_or_none()
    return ADDENDUM.validate_python(data, strict=False) if data else None


def added_file(found: Services, session: Session, content: str) -> AddedFile | None:
    """Return the file of LLVM's passes of a content, where there is a sound one."""
    addendum = latest(session, content, "llvm-passes")
    if isinstance(addendum, LlvmPasses):
        with contextlib.suppress(DamagedError):  # asking for the passes again makes a new one
            return found.added.open(addendum.file)
    return None


def open_extended(found: Services, content: str) -> TraceFile:
    """Return a stored trace with LLVM's passes where it has them; raise DamagedError where its own file is damaged."""
    trace = found.blobs.open(content)
    with found.database.read() as session:
        added = added_file(found, session, content)
    return ExtendedTrace(trace, added) if added else trace


def named_files(session: Session) -> set[str]:
    """Return all files that addenda name."""
    rows = select(AddendumRow.data).where(AddendumRow.kind == "llvm-passes")
    return {data["file"] for data in session.execute(rows).scalars()}


# Made once: every request for a page asks.
_STATES = (
    select(AddendumJob.kind, AddendumJob.status, AddendumJob.queued_at)
    .join(Trace, Trace.content == AddendumJob.content)
    .where(Trace.id == bindparam("trace_id"))
    .order_by(AddendumJob.kind)
)


def stamp(found: Services, trace_id: str) -> str:
    """Return what tells one state of a trace's addenda from another, for the keys of what is kept."""
    with found.database.read() as session:
        states = session.execute(_STATES, {"trace_id": trace_id})
        return ";".join(f"{kind},{status},{at}" for kind, status, at in states)


def llvm_passes(found: Services, session: Session, trace: Trace) -> LlvmPassesReply:
    """Tell of a trace's LLVM passes."""
    told = _state(found, session, trace, "llvm-passes")
    added = added_file(found, session, trace.content) if trace.content else None
    if added is None:
        if told["status"] == "done":
            told |= {"status": "failed", "message": "The stored file of LLVM's passes is damaged; ask for them again."}
        return LlvmPassesReply(**told)
    told["status"] = "done"
    return LlvmPassesReply(**told, stages=added.added.stages, note=added.added.note, file=added.content)


def pass_times(found: Services, session: Session, trace: Trace) -> PassTimesReply:
    """Tell of a trace's pass times."""
    told = _state(found, session, trace, "pass-times")
    times = latest(session, trace.content, "pass-times") if trace.content else None
    if isinstance(times, PassTimes):
        return PassTimesReply(**{**told, "status": "done"}, times=times)
    return PassTimesReply(**told)


def _state(found: Services, session: Session, trace: Trace, kind: Kind) -> dict[str, Any]:
    why = unavailable(found, trace, kind)
    job = addendum_jobs.find(session, trace.content, kind) if trace.content else None
    address = f"/api/v1/traces/{trace.id}/{kind}/events"
    if job is not None:
        return {"kind": kind, "status": job.status, "message": job.message, "events": address}
    return {"kind": kind, "status": "unavailable" if why else "absent", "message": why}


def unavailable(found: Services, trace: Trace, kind: Kind) -> str | None:
    """Return why a trace's input cannot be compiled again for an addendum, or None."""
    if trace.status not in FINAL:
        return "The trace is still being compiled."
    if trace.spec is None or trace.group_id is None:
        return "The trace was uploaded: this server does not have the input that it was compiled from."
    if trace.content is None:
        return "The trace holds no IR."
    manifest = found.blobs.open(trace.content).manifest
    if kind == "llvm-passes" and manifest.artifact("llvm-ir") is None:
        return "The trace has no LLVM IR: its compilation ended before LLVM's passes had run."
    if kind == "pass-times" and not manifest.stages:
        return "No pass of the trace ran."
    return None
