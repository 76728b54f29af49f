"""Progress as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flask import Blueprint, Response, current_app, request
from sqlalchemy import select

from app import replies
from app.api import Endpoint, endpoint
from app.errors import ApiError
from app.event_log import Watcher
from app.models import FINAL, Event, Trace
from app.services import Services, services

blueprint = Blueprint("events", __name__)

WATCHER = "loupe.watcher"
IDLE_SECONDS = 15.0
RETRY_MS = 1000
# Of a process's threads; the rest stay free for pages.
MAX_STREAMS = 48


def watcher() -> Watcher:
    """Return the app's watcher."""
    found = current_app.extensions[WATCHER]
    assert isinstance(found, Watcher)  # noqa: S101 - narrows Flask's untyped registry
    return found


@endpoint(
    blueprint,
    "GET",
    "/traces/<trace_id>/events",
    Endpoint(
        "Progress of a compilation as server-sent events",
        "text/event-stream",
        headers={"Last-Event-ID": "continue after this event; browsers send it by themselves"},
        errors={503: "too many streams are open"},
    ),
)
def stream(trace_id: str) -> Response:
    """Send what happened since ``Last-Event-ID`` and then what happens, up to ``done``."""
    found = services()
    with found.database.read() as session:
        replies.get_trace(session, trace_id)

    def final() -> dict[str, Any] | None:
        status = _final(found, trace_id)
        return {"status": status} if status else None

    return respond(found, trace_id, "", final)


def respond(found: Services, trace_id: str, prefix: str, final: Callable[[], dict[str, Any] | None]) -> Response:
    """Stream a trace's events, those of an addendum by its ``prefix``.

    ``final`` returns what ``done`` tells once there is nothing more to come.
    """
    last = request.headers.get("Last-Event-ID", "")
    after = int(last) if last.isascii() and last.isdecimal() and len(last) < 18 else 0
    if watcher().watching >= MAX_STREAMS:
        raise ApiError(503, "Too many pages follow compilations at once. Reload in a moment.")
    response = Response(_frames(found, watcher(), (trace_id, prefix, after), final), mimetype="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


def _frames(
    found: Services, watching: Watcher, what: tuple[str, str, int], final: Callable[[], dict[str, Any] | None]
) -> Iterator[str]:
    trace_id, prefix, after = what
    yield f"retry: {RETRY_MS}\n\n"
    own = Event.kind.startswith(prefix) if prefix else ~Event.kind.contains(":")

    def read(since: int) -> Sequence[Event]:
        with found.database.read() as session:
            rows = select(Event).where(Event.trace_id == trace_id, Event.id > since, own).order_by(Event.id)
            return session.execute(rows).scalars().all()

    for events in watching.watch(read, after, IDLE_SECONDS if final() is None else 0.0):
        # One chunk for all that came together: a write each would cost more than the events.
        yield "".join(map(_frame, events)) or ": idle\n\n"
        if any(event.kind == f"{prefix}done" for event in events):
            return
        if not events and (told := final()):
            yield f"event: done\ndata: {json.dumps(told)}\n\n"
            return


def _frame(event: Event) -> str:
    kind = event.kind.rpartition(":")[2]
    return f"id: {event.id}\nevent: {kind}\ndata: {json.dumps(event.data, separators=(',', ':'))}\n\n"


def _final(found: Services, trace_id: str) -> str | None:
    """Return the status of a finished trace; its events may be dropped already."""
    with found.database.read() as session:
        status = session.execute(select(Trace.status).where(Trace.id == trace_id)).scalar_one_or_none()
    return status if status in FINAL else None
