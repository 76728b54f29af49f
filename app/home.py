"""The home page: a source, what to compile it for, the gallery, and recent traces."""

from __future__ import annotations

import json
from typing import Any

from flask import Blueprint, Response, redirect, render_template, request
from pydantic import JsonValue, ValidationError
from werkzeug.wrappers import Response as BaseResponse

from app import replies, wire, workers
from app.api import Output, reply
from app.compiles import enqueue
from app.config import MAX_FORM_BYTES
from app.errors import ApiError
from app.examples import Example, gallery
from app.models import LOCAL
from app.replies import TraceBrief
from app.services import services
from app.submissions import CompileRequest
from app.targets import TargetsReply, targets

blueprint = Blueprint("home", __name__)

RECENT = 20
FIRST_EXAMPLE = "softmax"


class HomeReply(Output):
    """The home page's data."""

    examples: tuple[Example, ...]
    targets: TargetsReply
    recent: tuple[TraceBrief, ...]
    torch: str | None
    """Which torch launch code gets; None until a compile worker was ready once."""


@blueprint.get("/")
def show() -> Response:
    """Serve the page. Context: the data of ``/.json``, and ``form`` with its values."""
    name = request.args.get("example", FIRST_EXAMPLE)
    example = next((item for item in gallery() if item.name == name), None)
    return page({"source": example.source if example else ""})


@blueprint.get("/.json")
@blueprint.get("/index.json")
def twin() -> Response:
    """Serve the page's data."""
    return reply(load())


@blueprint.post("/compile")
def submit() -> BaseResponse:
    """Take the form of a browser without JavaScript, and go to the new trace or back to the form."""
    request.max_content_length = request.max_form_memory_size = MAX_FORM_BYTES
    form = request.form
    values: dict[str, Any] = {name: form.get(name, "") for name in ("source", "kernel", "args", "options")}
    values["targets"] = form.getlist("targets")
    try:
        return redirect(enqueue(services(), _request(values)).url, code=303)
    except ApiError as error:
        field = error.detail.get("field") if isinstance(error.detail, dict) else None
        response = page({**values, "error": {"message": error.message, "field": field}})
        response.status_code = error.status
        return response


def load() -> HomeReply:
    """Return the home page's data."""
    found = services()
    with found.database.read() as session:
        recent = tuple(replies.brief(found, trace) for trace in replies.recent(session, LOCAL, RECENT))
        return HomeReply(examples=gallery(), targets=targets(session), recent=recent, torch=workers.torch(session))


def page(form: dict[str, Any]) -> Response:
    """Render the page with a form's values."""
    data = load().model_dump(mode="json")
    blank = {
        "source": "",
        "kernel": "",
        "args": "",
        "options": "",
        "targets": data["targets"]["default"],
        "error": None,
    }
    html = render_template("home/home.html", **data, form={**blank, **form})
    response = Response(html, mimetype="text/html")
    response.headers["Cache-Control"] = wire.REVALIDATE
    return response


def _request(values: dict[str, Any]) -> CompileRequest:
    args: dict[str, str] = {}
    constexprs: dict[str, JsonValue] = {}
    for name, text in _assignments(values["args"], "args"):
        value = _literal(text)
        if value is None or isinstance(value, str):
            args[name] = text
        else:
            constexprs[name] = value
    try:
        return CompileRequest(
            source=values["source"].replace("\r\n", "\n"),
            kernel=values["kernel"].strip() or None,
            args=args or None,
            constexprs=constexprs,
            targets=tuple(values["targets"]),
            options={name: _literal(text) for name, text in _assignments(values["options"], "options")},
        )
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        field = str(fault["loc"][0]) if fault["loc"] else ""
        message = fault["msg"].removeprefix("Value error, ")
        raise ApiError(422, message, detail={"in": "form", "field": field}) from None


def _assignments(text: str, field: str) -> list[tuple[str, str]]:
    pairs = []
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if not line.strip():
            continue
        if not equals or not name.strip() or not value.strip():
            raise ApiError(422, f"{line.strip()!r} is not name=value", detail={"in": "form", "field": field})
        pairs.append((name.strip(), value.strip()))
    return pairs


def _literal(text: str) -> JsonValue:
    """Read a number, ``true`` or ``false``, ``"text"`` or a list as JSON writes it, else the text itself."""
    try:
        value: JsonValue = json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))
    except (ValueError, RecursionError):
        return text
    return value
