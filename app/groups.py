"""Groups: the page that compares the traces of one submission, its JSON twin, and the API."""

from __future__ import annotations

from flask import Blueprint, Response, render_template

from app import replies, wire
from app.api import Endpoint, endpoint, reply
from app.comparison import Section, compare
from app.replies import GroupReply
from app.services import services

blueprint = Blueprint("groups", __name__)


class GroupPage(GroupReply):
    """A group with its traces side by side."""

    comparison: tuple[Section, ...]


def load(group_id: str) -> GroupPage:
    """Return what the page shows of a group; raise ApiError 404 where there is none."""
    found = services()
    with found.database.read() as session:
        group, traces = replies.get_group(session, group_id)
        told = replies.group_reply(found, group, traces)
        sections = compare([replies.side(found, session, trace) for trace in traces])
    return GroupPage(**dict(told), comparison=sections)


@blueprint.get("/g/<group_id>")
def show(group_id: str) -> Response:
    """Serve a group's page. Context: ``group`` (GroupPage)."""
    response = Response(render_template("groups/show.html", group=load(group_id)), mimetype="text/html")
    response.headers["Cache-Control"] = wire.REVALIDATE
    return response


@blueprint.get("/g/<group_id>.json")
def twin(group_id: str) -> Response:
    """Serve the page's data."""
    return reply(load(group_id))


@endpoint(blueprint, "GET", "/groups/<group_id>", Endpoint("The traces of one submission", GroupReply))
def read(group_id: str) -> GroupReply:
    """Tell a group's traces."""
    found = services()
    with found.database.read() as session:
        return replies.group_reply(found, *replies.get_group(session, group_id))
