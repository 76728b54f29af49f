"""What the API answers about traces and groups, built from rows and stored files."""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import added
from app.added import LlvmPassesReply, PassTimesReply
from app.api import Output
from app.blobs import DamagedError
from app.errors import ApiError
from app.ids import PERMALINK
from app.models import FINAL, Group, Trace
from app.services import Services
from pipelines.addenda import StageTime, Times
from pipelines.analysis.summary import Summary
from pipelines.trace import Failure, Manifest, Resources
from pipelines.triton_path.targets import BACKENDS


class TraceBrief(Output):
    """A trace in a list."""

    id: str
    url: str
    group: str | None
    status: Literal["queued", "running", "ok", "failed"]
    created: str = Field(description="UTC, ISO 8601")
    kernel: str | None
    target: str
    config: str | None = Field(description="the autotune config, where the kernel has several")
    content: str | None
    cached: bool = Field(description="whether the result was known when this was submitted")
    pending: tuple[str, ...] = Field(description="artifacts that are still being made")
    failure: Failure | None
    resources: Resources | None
    damage: str | None = Field(default=None, description="why the stored file cannot be read, and how it comes back")


class TraceReply(TraceBrief):
    """A trace with everything but its texts."""

    manifest: Manifest | None
    summary: Summary | None = Field(description="what each pass changed, those of llvm_passes too")
    times: tuple[StageTime, ...] | None
    llvm_passes: LlvmPassesReply | None = None
    pass_times: PassTimesReply | None = None

    @functools.cached_property
    def extended(self) -> Manifest | None:
        """The manifest with LLVM's stages after its own."""
        stages = self.llvm_passes.stages if self.llvm_passes else ()
        if self.manifest is None or not stages:
            return self.manifest
        return self.manifest.model_copy(update={"stages": (*self.manifest.stages, *stages)})


class GroupReply(Output):
    """The traces of one submission, in order of targets and launches."""

    id: str
    url: str
    created: str
    traces: tuple[TraceBrief, ...]


def get_trace(session: Session, trace_id: str) -> Trace:
    """Return a trace by its permalink; raise ApiError 404 where there is none."""
    trace = session.get(Trace, trace_id) if PERMALINK.fullmatch(trace_id) else None
    if trace is None:
        raise ApiError(
            404, f"There is no trace {trace_id[:64]!r}. Check the link, or that this is the server that made it."
        )
    return trace


def get_group(session: Session, group_id: str) -> tuple[Group, list[Trace]]:
    """Return a group and its traces; raise ApiError 404 where there is none."""
    group = session.get(Group, group_id) if PERMALINK.fullmatch(group_id) else None
    if group is None:
        raise ApiError(
            404, f"There is no group {group_id[:64]!r}. Check the link, or that this is the server that made it."
        )
    rows = select(Trace).where(Trace.group_id == group.id)
    order = {target: index for index, target in enumerate(group.request.get("targets", ()))}
    traces = sorted(session.execute(rows).scalars(), key=lambda t: (order.get(t.target, 0), t.variant))
    return group, traces


def recent(session: Session, team: str, limit: int) -> list[Trace]:
    """Return the newest traces of a team."""
    rows = select(Trace).where(Trace.team == team).order_by(Trace.created.desc(), Trace.variant).limit(limit)
    return list(session.execute(rows).scalars())


def brief(services: Services, trace: Trace) -> TraceBrief:
    """Describe a trace in a list; one whose file is damaged must not take the list with it."""
    try:
        return TraceBrief(**_common(trace, _manifest(services, trace)))
    except DamagedError as error:
        return TraceBrief(**_common(trace, None), damage=str(error))


def side(services: Services, session: Session, trace: Trace) -> TraceReply:
    """Describe a trace beside others: whole, or without what is damaged."""
    try:
        return whole(services, session, trace)
    except DamagedError as error:
        told = {**_common(trace, None), "damage": str(error)}
        return TraceReply(**told, manifest=None, summary=None, times=None)


def whole(services: Services, session: Session, trace: Trace) -> TraceReply:
    """Describe a trace with its manifest, summary and times; raise DamagedError where its file cannot be read."""
    manifest = _manifest(services, trace)
    llvm = added.llvm_passes(services, session, trace)
    return TraceReply(
        **_common(trace, manifest),
        manifest=manifest,
        summary=_summary(services, trace, llvm.file),
        times=_times(session, trace.content) if trace.content else None,
        llvm_passes=llvm,
        pass_times=added.pass_times(services, session, trace),
    )


def group_reply(services: Services, group: Group, traces: list[Trace]) -> GroupReply:
    """Describe a group."""
    return GroupReply(
        id=group.id,
        url=f"/g/{group.id}",
        created=iso(group.created),
        traces=tuple(brief(services, trace) for trace in traces),
    )


def _common(trace: Trace, manifest: Manifest | None) -> dict[str, Any]:
    failure = Failure.model_validate(trace.failure) if trace.failure else None
    return {
        "id": trace.id,
        "url": f"/t/{trace.id}",
        "group": trace.group_id,
        "status": trace.status,
        "created": iso(trace.created),
        "kernel": trace.kernel,
        "target": trace.target,
        "config": trace.config,
        "content": trace.content,
        "cached": trace.cached,
        "pending": _pending(trace, manifest),
        "failure": failure or (manifest.failure if manifest else None),
        "resources": manifest.resources if manifest else None,
    }


def _pending(trace: Trace, manifest: Manifest | None) -> tuple[str, ...]:
    if trace.status != "running" or manifest is None:
        return ()
    late = BACKENDS[manifest.target.backend].late if manifest.target.backend in BACKENDS else ()
    return tuple(name for name in late if manifest.artifact(name) is None)


def _manifest(services: Services, trace: Trace) -> Manifest | None:
    return services.blobs.open(trace.content).manifest if trace.content else None


def _summary(services: Services, trace: Trace, llvm_file: str | None) -> Summary | None:
    """Return the summary; while a trace is compiled only if it is ready, since the page should not wait for it."""
    if trace.content is None:
        return None
    if trace.status not in FINAL:
        return services.analyses.kept_summary(trace.content)
    summary = services.analyses.summary_on_request(trace.content)
    extra = services.analyses.added_summary_on_request(trace.content, llvm_file) if llvm_file else None
    if summary is None or extra is None:
        return summary
    return Summary(rows={**summary.rows, **extra.rows})


def _times(session: Session, content: str) -> tuple[StageTime, ...] | None:
    times = added.latest(session, content, "times")
    return times.times if isinstance(times, Times) else None


def iso(seconds: float) -> str:
    """Return a moment in UTC as ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
