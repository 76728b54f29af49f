"""Compilations are asked for here."""

from __future__ import annotations

from flask import Blueprint

from app import workers
from app.api import Endpoint, Output, endpoint
from app.errors import ApiError
from app.services import Services, services
from app.submissions import CompileRequest, Submission, submit

blueprint = Blueprint("compiles", __name__)


class CompileReply(Output):
    """A group with a trace for each target; more follow where the source makes several launches (event ``group``)."""

    group: str
    traces: tuple[str, ...]
    url: str


@endpoint(
    blueprint,
    "POST",
    "/compiles",
    Endpoint(
        "Compile a kernel",
        CompileReply,
        status=202,
        body=CompileRequest,
        errors={422: "the request cannot be compiled as it is", 503: "this server cannot compile"},
    ),
)
def create(body: CompileRequest) -> CompileReply:
    """Queue a compilation for each target, or answer at once where the result is known."""
    made = enqueue(services(), body)
    return CompileReply(group=made.group, traces=made.traces, url=made.url)


def enqueue(found: Services, request: CompileRequest) -> Submission:
    """Store a request and send its jobs to the queue.

    Raises:
        ApiError: an unknown option (422), or the worker refuses to compile on this machine (503).
    """
    with found.database.write() as session:
        worker = workers.newest(session)
        if worker is not None and worker.state == "refused" and workers.is_alive(worker):
            raise ApiError(503, worker.message or "The compile worker cannot compile on this machine.")
        facts = workers.facts(session)
        known = {str(option["name"]) for option in facts.options} if facts else None
        for name in request.options:
            if known is not None and name not in known:
                words = f"options: there is no option {name}; the backend has {', '.join(sorted(known))}"
                raise ApiError(422, words, detail={"in": "body", "field": "options"})
        made = submit(session, found.blobs, request)
    for trace_id in made.queued:
        found.queue.send(trace_id)
    return made
