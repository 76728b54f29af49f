"""Tables. The database holds the truth about traces and their jobs; blobs hold what traces say.

All times are UNIX seconds.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal

from sqlalchemy import JSON, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from app.ids import new_permalink

LOCAL = "local"

Status = Literal["queued", "running", "ok", "failed"]
FINAL: tuple[Status, ...] = ("ok", "failed")


class Base(DeclarativeBase):
    """Declares how Python types become columns."""

    type_annotation_map: ClassVar = {dict[str, Any]: JSON(none_as_null=True), list[Any]: JSON(none_as_null=True)}


class Group(Base):
    """Traces made by one submission, and what was asked for."""

    __tablename__ = "groups"

    id: Mapped[str] = mapped_column(String(22), primary_key=True, default=new_permalink)
    team: Mapped[str] = mapped_column(String(64), default=LOCAL)
    owner: Mapped[str] = mapped_column(String(64), default=LOCAL)
    visibility: Mapped[str] = mapped_column(String(16), default="link")
    created: Mapped[float] = mapped_column(default=time.time)
    request: Mapped[dict[str, Any]]


class Trace(Base):
    """One permalink and the job that fills it. Once ``status`` is final only owner and visibility can change."""

    __tablename__ = "traces"
    __table_args__ = (
        UniqueConstraint("group_id", "target", "variant"),
        Index("ix_traces_key", "team", "compile_key", "status"),
        Index("ix_traces_created", "team", "created"),
        Index("ix_traces_status", "status"),
        Index("ix_traces_content", "content"),
    )

    id: Mapped[str] = mapped_column(String(22), primary_key=True, default=new_permalink)
    group_id: Mapped[str | None] = mapped_column(ForeignKey("groups.id"))
    team: Mapped[str] = mapped_column(String(64), default=LOCAL)
    owner: Mapped[str] = mapped_column(String(64), default=LOCAL)
    visibility: Mapped[str] = mapped_column(String(16), default="link")
    created: Mapped[float] = mapped_column(default=time.time)
    status: Mapped[str] = mapped_column(String(16), default="queued")
    kernel: Mapped[str | None]
    target: Mapped[str] = mapped_column(String(32))
    variant: Mapped[int] = mapped_column(default=0)
    config: Mapped[str | None]
    spec: Mapped[dict[str, Any] | None]
    compile_key: Mapped[str | None] = mapped_column(String(64))
    content: Mapped[str | None] = mapped_column(String(64))
    cacheable: Mapped[bool] = mapped_column(default=False)
    cached: Mapped[bool] = mapped_column(default=False)
    failure: Mapped[dict[str, Any] | None]
    attempts: Mapped[int] = mapped_column(default=0)
    queued_at: Mapped[float] = mapped_column(default=time.time)
    worker: Mapped[str | None] = mapped_column(String(22))
    claim: Mapped[str | None] = mapped_column(String(22))
    claimed_at: Mapped[float | None]
    finished: Mapped[float | None]


class Event(Base):
    """Progress of a job; rows are only appended, and dropped an hour after their trace is finished."""

    __tablename__ = "events"
    __table_args__ = (Index("ix_events_trace", "trace_id", "id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    trace_id: Mapped[str] = mapped_column(ForeignKey("traces.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(String(32))
    data: Mapped[dict[str, Any]]


class AddendumRow(Base):
    """What came later or varies from run to run; a row is written once."""

    __tablename__ = "addenda"

    content: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(32), primary_key=True)
    revision: Mapped[int] = mapped_column(primary_key=True)
    data: Mapped[dict[str, Any]]
    created: Mapped[float] = mapped_column(default=time.time)


class AddendumJob(Base):
    """The job that makes an addendum: one for each content and kind, however many traces or clicks ask for it."""

    __tablename__ = "addendum_jobs"
    __table_args__ = (UniqueConstraint("content", "kind"), Index("ix_addendum_jobs_status", "status"))

    id: Mapped[str] = mapped_column(String(22), primary_key=True, default=new_permalink)
    trace_id: Mapped[str] = mapped_column(ForeignKey("traces.id"))
    content: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(32))
    status: Mapped[str] = mapped_column(String(16), default="queued")
    message: Mapped[str | None]
    attempts: Mapped[int] = mapped_column(default=0)
    queued_at: Mapped[float] = mapped_column(default=time.time)
    worker: Mapped[str | None] = mapped_column(String(22))
    claim: Mapped[str | None] = mapped_column(String(22))
    finished: Mapped[float | None]


class Capture(Base):
    """The launches that a source's own code makes, so that the same source is not run again."""

    __tablename__ = "captures"

    team: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    launches: Mapped[list[Any]]
    created: Mapped[float] = mapped_column(default=time.time)


class WorkerRow(Base):
    """A process that compiles, named by ``pid`` and ``process``: whether it lives, and what its toolchain is."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(String(22), primary_key=True, default=new_permalink)
    kind: Mapped[str] = mapped_column(String(16))
    host: Mapped[str]
    pid: Mapped[int]
    process: Mapped[str | None]
    started: Mapped[float] = mapped_column(default=time.time)
    heartbeat: Mapped[float] = mapped_column(default=time.time)
    state: Mapped[str] = mapped_column(String(16), default="starting")
    message: Mapped[str | None]
    facts: Mapped[dict[str, Any] | None]
