"""Rows of the processes that compile: who lives, what their toolchain is, and the sweep after the dead."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import TYPE_CHECKING, Any

from pydantic import field_validator
from sqlalchemy import case, delete, select, update
from sqlalchemy.orm import Session

from app import addendum_jobs, jobs
from app.api import Output
from app.models import WorkerRow
from app.processes import identity
from pipelines.kernels.torch_version import STAND_IN, name_version
from pipelines.trace import Toolchain
from pipelines.triton_path.options import FIXED

if TYPE_CHECKING:
    from pipelines.triton_path.compile import Compiler

HEARTBEAT_SECONDS = 2.0
STALE_SECONDS = 30.0
LOST_MESSAGE_SECONDS = 10.0
FORGET_SECONDS = 3600.0


class Facts(Output):
    """What a ready worker says of itself: its toolchain, how it confines code, and the options of each back end."""

    toolchain: Toolchain
    confinement: dict[str, Any]
    options: dict[str, list[dict[str, Any]]]

    @field_validator("options", mode="before")
    @classmethod
    def _by_backend(cls, options: Any) -> Any:
        """Read what a worker told when there was one back end, and the database still holds."""
        return {"cuda": options} if isinstance(options, list) else options


def facts_of(compiler: Compiler) -> Facts:
    """Return what a started compiler tells the server."""
    return Facts(
        toolchain=compiler.toolchain,
        confinement={**compiler.confinement.describe(), "trusted": compiler.confinement.trusted},
        # The values of what the target decides may name files of this machine, and nobody can set them.
        options={
            backend: [
                option.model_copy(update={"default": None} if option.name in FIXED else {}).model_dump(mode="json")
                for option in options
            ]
            for backend, options in compiler.options.items()
        },
    )


def register(session: Session, kind: str) -> str:
    """Add this process; return its id."""
    row = WorkerRow(kind=kind, host=socket.gethostname(), pid=os.getpid(), process=identity(os.getpid()))
    session.add(row)
    session.flush()
    return row.id


def report(
    session: Session, worker: str, state: str, *, facts: Facts | None = None, message: str | None = None
) -> None:
    """Change what a worker says of itself: ``starting``, ``ready``, or ``refused``, for the reason in ``message``."""
    values: dict[str, Any] = {"state": state, "message": message, "heartbeat": time.time()}
    if facts:
        values["facts"] = facts.model_dump(mode="json")
    session.execute(update(WorkerRow).where(WorkerRow.id == worker).values(values))


def beat(session: Session, worker: str) -> None:
    """Say that a worker lives; one that was taken for dead, since its machine slept, is back."""
    back = case(
        (WorkerRow.state != "dead", WorkerRow.state),
        (WorkerRow.message.is_not(None), "refused"),
        (WorkerRow.facts.is_not(None), "ready"),
        else_="starting",
    )
    session.execute(update(WorkerRow).where(WorkerRow.id == worker).values(heartbeat=time.time(), state=back))


def retire(session: Session, worker: str) -> None:
    """Mark a worker that stops in order; its facts stay for the about page and for compile keys."""
    session.execute(update(WorkerRow).where(WorkerRow.id == worker).values(state="stopped", heartbeat=time.time()))


def sweep(session: Session, *, lost_after: float = LOST_MESSAGE_SECONDS) -> list[str]:
    """Put back the jobs of workers that do not live; return every message that should be sent to the queue again."""
    rows = list(session.execute(select(WorkerRow).where(WorkerRow.state != "stopped")).scalars())
    alive = [row.id for row in rows if is_alive(row)]
    dead = [row.id for row in rows if row.id not in alive]
    back = [*jobs.release(session, alive), *addendum_jobs.release(session, alive)]
    session.execute(update(WorkerRow).where(WorkerRow.id.in_(dead)).values(state="dead"))
    jobs.drop_old_events(session)
    _forget(session)
    before = time.time() - lost_after
    waiting = [*jobs.waiting(session, older_than=before), *addendum_jobs.waiting(session, older_than=before)]
    return list(dict.fromkeys([*back, *waiting]))


def is_alive(row: WorkerRow) -> bool:
    """Say whether a worker lives: by its process on this machine, by its heartbeat on another."""
    if row.host != socket.gethostname():
        return time.time() - row.heartbeat < STALE_SECONDS
    return row.process is not None and identity(row.pid) == row.process


def newest(session: Session) -> WorkerRow | None:
    """Return the compile worker that started last, alive or not."""
    rows = select(WorkerRow).where(WorkerRow.kind == "compile").order_by(WorkerRow.started.desc()).limit(1)
    return session.execute(rows).scalar_one_or_none()


def facts(session: Session) -> Facts | None:
    """Return what the worker that was ready last said of itself, even if it stopped since."""
    rows = select(WorkerRow.facts).where(WorkerRow.facts.is_not(None)).order_by(WorkerRow.started.desc()).limit(1)
    found = session.execute(rows).scalar_one_or_none()
    return Facts.model_validate_json(json.dumps(found)) if found else None


def toolchain(session: Session) -> Toolchain | None:
    """Return the toolchain of a worker that is ready now; an older one must not decide what is known already."""
    rows = select(WorkerRow).where(WorkerRow.state == "ready").order_by(WorkerRow.started.desc())
    alive = next((row for row in session.execute(rows).scalars() if is_alive(row)), None)
    return Facts.model_validate_json(json.dumps(alive.facts)).toolchain if alive and alive.facts else None


def torch(session: Session) -> str | None:
    """Say which torch launch code gets; None until a worker was ready once."""
    told = facts(session)
    if told is None:
        return None
    versions = [tool.version for tool in told.toolchain.tools if tool.name == "torch"]
    return name_version(versions[0]) if versions else STAND_IN


def _forget(session: Session) -> None:
    """Delete what ended long ago, but not the last eight and not what the last ready one said."""
    ended = select(WorkerRow.id).where(WorkerRow.state.in_(("dead", "stopped"))).order_by(WorkerRow.started.desc())
    told = select(WorkerRow.id).where(WorkerRow.facts.is_not(None)).order_by(WorkerRow.started.desc()).limit(1)
    old = WorkerRow.heartbeat < time.time() - FORGET_SECONDS
    session.execute(delete(WorkerRow).where(WorkerRow.id.in_(ended.offset(8)), WorkerRow.id.not_in(told), old))
