"""Compilations are asked for here."""

from __future__ import annotations

from flask import Blueprint

from app import workers
from app.api import Endpoint, Output, endpoint
from app.errors import ApiError
from app.services import Services, services
from app.submissions import CompileRequest, Submission, submit
from app.workers import Facts
from pipelines.kernels.signature import SignatureError, parse_argument
from pipelines.triton_path.options import OptionError, OptionField, check_options
from pipelines.triton_path.targets import chip

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
        ApiError: an argument's type or an option that cannot be (422), or a worker that refuses to compile on this
            machine (503).
    """
    with found.database.write() as session:
        worker = workers.newest(session)
        if worker is not None and worker.state == "refused" and workers.is_alive(worker):
            raise ApiError(503, worker.message or "The compile worker cannot compile on this machine.")
        check(request, workers.facts(session))
        made = submit(session, found.blobs, request)
    for trace_id in made.queued:
        found.queue.send(trace_id)
    return made


def check(request: CompileRequest, facts: Facts | None) -> None:
    """Refuse what no compilation could take; options once a worker told of them.

    Raises:
        ApiError: 422 at the field that is wrong.
    """
    field = "args"
    try:
        for name, text in (request.args or {}).items():
            field = f"args.{name}"
            parse_argument(name, text)
        field = "options"
        for backend in dict.fromkeys(chip(target).backend.name for target in request.targets):
            told = facts.options.get(backend) if facts else None
            if told:
                check_options([OptionField.model_validate(option) for option in told], request.options)
    except (SignatureError, OptionError) as error:
        raise ApiError(422, str(error), detail={"in": "body", "field": field}) from None
