"""Groups: the page that compares the traces of one submission, its JSON twin, and the API."""

from __future__ import annotations

from flask import Blueprint, Response, render_template

from app import replies, wire
from app.api import Endpoint, endpoint, reply
from app.replies import GroupReply
from app.services import services

blueprint = Blueprint("groups", __name__)


def load(group_id: str) -> GroupReply:
    """Return what is told of a group; raise ApiError 404 where there is none."""
    found = services()
    with found.database.read() as session:
        return replies.group_reply(found, *replies.get_group(session, group_id))


@blueprint.get("/g/<group_id>")
def show(group_id: str) -> Response:
    """Serve a group's page. Context: ``group`` (GroupReply) and ``traces`` (TraceReply each, in the group's order)."""
    found = services()
    with found.database.read() as session:
        group, rows = replies.get_group(session, group_id)
        traces = [replies.whole(found, session, row) for row in rows]
    page = render_template("groups/group.html", group=replies.group_reply(found, group, rows), traces=traces)
    response = Response(page, mimetype="text/html")
    response.headers["Cache-Control"] = wire.REVALIDATE
    return response


@blueprint.get("/g/<group_id>.json")
def twin(group_id: str) -> Response:
    """Serve the page's data."""
    return reply(load(group_id))


@endpoint(blueprint, "GET", "/groups/<group_id>", Endpoint("The traces of one submission", GroupReply))
def read(group_id: str) -> GroupReply:
    """Tell a group's traces."""
    return load(group_id)
