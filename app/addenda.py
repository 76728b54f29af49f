"""What comes to a finished trace on demand is asked for here: LLVM's own passes, and the times of passes."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from app import added, addendum_jobs, events
from app.added import LlvmPassesReply, PassTimesReply
from app.addendum_jobs import PREFIX, Kind
from app.api import Endpoint, Input, endpoint
from app.errors import ApiError
from app.models import AddendumJob
from app.replies import get_trace
from app.services import Services, services

blueprint = Blueprint("addenda", __name__)


class AddendumRequest(Input):
    """Nothing to choose, ``{}``: the trace itself says what to compile again."""


_ERRORS = {409: "the trace is not finished, was not compiled here, or holds nothing to add to"}


def request(found: Services, trace_id: str, kind: Kind) -> str | None:
    """Have an addendum made unless it is there; return the message to send to the queue.

    Raises:
        ApiError: 409 where it cannot be made.
    """
    with found.database.write() as session:
        trace = get_trace(session, trace_id)
        why = added.unavailable(found, trace, kind)
        if why:
            raise ApiError(409, why)
        tell = added.pass_times if kind == "pass-times" else added.llvm_passes
        there = tell(found, session, trace)
        if there.status in ("done", *addendum_jobs.BUSY):
            return None
        return PREFIX + addendum_jobs.request(session, trace, kind).id


def _ask(trace_id: str, kind: Kind) -> None:
    message = request(services(), trace_id, kind)
    if message:
        services().queue.send(message)


@endpoint(
    blueprint,
    "POST",
    "/traces/<trace_id>/llvm-passes",
    Endpoint(
        "Compile a trace's input again for LLVM's own passes",
        LlvmPassesReply,
        status=202,
        body=AddendumRequest,
        errors=_ERRORS,
    ),
)
def ask_llvm_passes(trace_id: str, body: AddendumRequest) -> LlvmPassesReply:
    """Queue the second compilation, or answer with what is there; asking twice makes one job."""
    del body
    _ask(trace_id, "llvm-passes")
    return _llvm_passes(trace_id)


@endpoint(
    blueprint,
    "GET",
    "/traces/<trace_id>/llvm-passes",
    Endpoint("LLVM's own passes of a trace", LlvmPassesReply),
)
def read_llvm_passes(trace_id: str) -> LlvmPassesReply:
    """Tell the passes; their texts are at ``passes/llvm-ir:7``, ``texts/<digest>`` and in ``diff``."""
    return _llvm_passes(trace_id)


def _llvm_passes(trace_id: str) -> LlvmPassesReply:
    found = services()
    with found.database.read() as session:
        return added.llvm_passes(found, session, get_trace(session, trace_id))


@endpoint(
    blueprint,
    "POST",
    "/traces/<trace_id>/pass-times",
    Endpoint(
        "Compile a trace's input again for its passes' times",
        PassTimesReply,
        status=202,
        body=AddendumRequest,
        errors=_ERRORS,
    ),
)
def ask_pass_times(trace_id: str, body: AddendumRequest) -> PassTimesReply:
    """Queue the compilations, or answer with what is there; asking twice makes one job."""
    del body
    _ask(trace_id, "pass-times")
    return _pass_times(trace_id)


@endpoint(blueprint, "GET", "/traces/<trace_id>/pass-times", Endpoint("Times of a trace's passes", PassTimesReply))
def read_pass_times(trace_id: str) -> PassTimesReply:
    """Tell the times, of compilations without dumps."""
    return _pass_times(trace_id)


def _pass_times(trace_id: str) -> PassTimesReply:
    found = services()
    with found.database.read() as session:
        return added.pass_times(found, session, get_trace(session, trace_id))


_STREAM = Endpoint(
    "Progress of an addendum as server-sent events",
    "text/event-stream",
    headers={"Last-Event-ID": "continue after this event; browsers send it by themselves"},
    errors={503: "too many streams are open"},
)


@endpoint(blueprint, "GET", "/traces/<trace_id>/llvm-passes/events", _STREAM)
def stream_llvm_passes(trace_id: str) -> Response:
    """Send what happened since ``Last-Event-ID`` and then what happens, up to ``done``."""
    return _stream(trace_id, "llvm-passes")


@endpoint(blueprint, "GET", "/traces/<trace_id>/pass-times/events", _STREAM)
def stream_pass_times(trace_id: str) -> Response:
    """Send what happened since ``Last-Event-ID`` and then what happens, up to ``done``."""
    return _stream(trace_id, "pass-times")


def _stream(trace_id: str, kind: Kind) -> Response:
    found = services()

    def job() -> AddendumJob | None:
        with found.database.read() as session:
            trace = get_trace(session, trace_id)
            return addendum_jobs.find(session, trace.content, kind) if trace.content else None

    def final() -> dict[str, Any] | None:
        now = job()
        busy = now is not None and now.status in addendum_jobs.BUSY
        return None if busy else {"status": now.status if now else "absent", "message": now.message if now else None}

    made_for = job()
    return events.respond(found, made_for.trace_id if made_for else trace_id, f"{kind}:", final)
