"""Exports over HTTP: a trace as one HTML file, as a zip numbered by pass and as Markdown, a group as one zip."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Annotated, Any

from flask import Blueprint, Response, request
from pydantic import Field
from sqlalchemy.orm import Session

from app import replies, wire, workers
from app.added import added_file, open_extended
from app.api import Endpoint, Input, endpoint
from app.errors import ApiError
from app.export_files import contents, safe, zipped
from app.export_html import Page, TooLargeError, render
from app.export_markdown import MAX_PARTS, Trace, markdown, parts_of
from app.models import FINAL
from app.models import Trace as TraceRow
from app.services import Services, services
from app.targets import targets
from app.traces import file_name
from pipelines.analysis.diff import Diff
from pipelines.trace import Manifest, Snapshot
from pipelines.tracefile import TraceFile

blueprint = Blueprint("exports", __name__)

ZIP = "application/zip"
RENDER_WAIT = 10.0
# A page is as large as its trace, in memory, while it is made.
_rendering = threading.BoundedSemaphore(2)

UNFINISHED = {409: "the trace is not finished, or ended without any IR"}

Address = Annotated[str, Field(max_length=200)]


class MarkdownQuery(Input):
    """``item``, ``lines`` and ``diff`` may each come several times.

    The first ``lines`` (``10-20``) belong to the first ``item`` and so on; ``diff`` is ``ttgir:3..ttgir:9``, or one
    address for the diff with what that pass received. ``locations=1`` keeps locations.
    """

    item: Annotated[tuple[Address, ...], Field(max_length=MAX_PARTS)] = ()
    lines: Annotated[tuple[Address, ...], Field(max_length=MAX_PARTS)] = ()
    diff: Annotated[tuple[Address, ...], Field(max_length=MAX_PARTS)] = ()
    locations: bool = False


@endpoint(
    blueprint,
    "GET",
    "/traces/<trace_id>/export.html",
    Endpoint(
        "The trace as one HTML file that opens from disk",
        "text/html",
        errors={**UNFINISHED, 413: "too large", 429: "other pages are being made"},
    ),
)
def read_html(trace_id: str) -> Response:
    """Send the trace page with all its data in it."""
    found = services()
    row, file = _open(found, trace_id)
    with found.database.read() as session:
        reply = replies.whole(found, session, row)
        added = added_file(found, session, file.content)
    extended = open_extended(found, file.content)

    def diff(before: Snapshot, after: Snapshot) -> Diff | None:
        return found.analyses.diff(extended, before, after) if reply.summary else None

    page = Page(file, reply, diff, _link(f"/t/{row.id}"), added)
    if not _rendering.acquire(timeout=RENDER_WAIT):
        raise ApiError(429, "Other traces are being exported. Try again in a moment.")
    try:
        data = render(page)
    except TooLargeError as error:
        raise ApiError(413, str(error)) from None
    finally:
        _rendering.release()
    response = wire.Packed.of("text/html", data).response(wire.REVALIDATE)
    return _saved(response, file_name(row, ".html"))


@endpoint(
    blueprint,
    "GET",
    "/traces/<trace_id>/export.zip",
    Endpoint("The trace as files numbered by pass", ZIP, errors=UNFINISHED),
)
def read_zip(trace_id: str) -> Response:
    """Send a zip while it is made."""
    row, file = _open(services(), trace_id)
    return _zip(file.content, contents(file), file_name(row, ".zip"))


@endpoint(
    blueprint,
    "GET",
    "/traces/<trace_id>/export.md",
    Endpoint(
        "The trace as Markdown with chosen snippets and diffs", "text/markdown", query=MarkdownQuery, errors=UNFINISHED
    ),
)
def read_markdown(trace_id: str, query: MarkdownQuery) -> Response:
    """Send what the trace is, and the snippets and diffs that were asked for."""
    found = services()
    row, file = _open(found, trace_id)
    file = open_extended(found, file.content)
    parts = parts_of(file.manifest, query.item, query.lines, query.diff)
    with found.database.read() as session:
        defaults = defaults_of(session, file.manifest)
    trace = Trace(
        manifest=file.manifest,
        text=lambda snapshot: found.analyses.text(file, snapshot.text, snapshot.syntax),
        diff=lambda before, after: found.analyses.diff(file, before, after),
        link=_link(f"/t/{row.id}"),
        defaults=defaults,
        locations=query.locations,
    )
    data = markdown(trace, parts).encode("utf-8", errors="replace")
    response = wire.Packed.of("text/markdown; charset=utf-8", data).response(wire.REVALIDATE)
    return _saved(response, file_name(row, ".md"))


@endpoint(
    blueprint,
    "GET",
    "/groups/<group_id>/export.zip",
    Endpoint("The finished traces of a group, a folder each", ZIP, errors={409: "no trace of the group is finished"}),
)
def read_group_zip(group_id: str) -> Response:
    """Send one zip of all traces that left any IR."""
    found = services()
    with found.database.read() as session:
        _, rows = replies.get_group(session, group_id)
    # Opened before anything is sent: a damaged file is told, not half of a zip.
    opened = [(row, found.blobs.open(row.content)) for row in rows if row.status in FINAL and row.content]
    if not opened:
        raise ApiError(409, "No trace of this group is finished, so there is nothing to export yet.")
    folders = [
        (f"{number:02}-{safe(file_name(row, ''))}", row.content or "") for number, (row, _) in enumerate(opened, 1)
    ]

    def members() -> Iterator[tuple[str, bytes]]:
        for folder, content in folders:
            for name, data in contents(found.blobs.open(content)):
                yield f"{folder}/{name}", data

    return _zip(repr(folders), members(), f"{safe(opened[0][0].kernel or 'group')}-group.zip")


def defaults_of(session: Session, manifest: Manifest) -> dict[str, Any] | None:
    """Return the options' defaults, where a worker told those of the trace's own toolchain."""
    facts = workers.facts(session)
    if facts is None or facts.toolchain.name != manifest.toolchain.name:
        return None
    backend, options = manifest.target.backend, targets(session).options
    return {option.name: option.defaults[backend] for option in options if backend in option.defaults}


def _open(found: Services, trace_id: str) -> tuple[TraceRow, TraceFile]:
    with found.database.read() as session:
        row = replies.get_trace(session, trace_id)
    if row.status not in FINAL or not row.content:
        raise ApiError(409, "This trace is not finished, or ended without any IR: there is nothing to export.")
    return row, found.blobs.open(row.content)


def _link(path: str) -> str:
    return request.host_url.rstrip("/") + path


def _zip(key: str, members: Iterator[tuple[str, bytes]], name: str) -> Response:
    etag = wire.tag(f"{key}:zip")
    known = request.if_none_match.contains(etag)
    response = Response(status=304) if known else Response(zipped(members), mimetype=ZIP)
    response.headers["Cache-Control"] = wire.REVALIDATE
    response.set_etag(etag)
    return _saved(response, name)


def _saved(response: Response, name: str) -> Response:
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
