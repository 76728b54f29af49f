"""Traces: the page with its JSON twin, what the API tells of one, its file, and uploads."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint, Response, render_template, request, send_file
from pydantic import Field

from app import added, replies, wire
from app.api import Endpoint, Input, Output, endpoint, parse_query
from app.assets import assets
from app.cache import MemoryCache
from app.errors import ApiError
from app.models import FINAL, Trace
from app.replies import TraceReply
from app.services import Services, services
from app.texts import NO_TEXTS, DiffReply, diff_reply, open_trace
from app.trace_view import SCRIPTED, Mode, PageQuery, View, make_view
from app.uploads import receive
from app.wire import Packed
from pipelines.analysis.mask import count_lines
from pipelines.trace import Manifest, Syntax
from pipelines.tracefile import SUFFIX

blueprint = Blueprint("traces", __name__)

REPLY_BYTES = 64 << 20
PAGE_BYTES = 32 << 20
MAX_INLINE = 1 << 20
MEDIA_TYPE = "application/vnd.loupe.trace"

_replies: MemoryCache[Packed] = MemoryCache(REPLY_BYTES)
_pages: MemoryCache[str] = MemoryCache(PAGE_BYTES)


class PassReply(Output):
    """One snapshot: the pass that left it (null for inputs and artifacts) and its text.

    ``text`` is the digest and ``ir`` the text itself, null where that is binary or larger than 1 MB; SASS comes without
    encodings.
    """

    address: str
    name: str | None
    argument: str | None
    anchor: str | None
    function: str | None
    parent: int | None
    step: str | None
    text: str
    lines: int
    bytes: int
    syntax: Syntax
    ir: str | None


class ViewReply(Output):
    """What the parameters ``pass``, ``against`` and ``view`` of a trace page show.

    ``text`` is the digest at ``address``; ``diff`` is there where ``mode`` is diff or unified.
    """

    address: str | None
    against: str | None
    mode: Mode
    text: str | None = None
    diff: DiffReply | None = None
    error: dict[str, str] | None = None


class TracePage(TraceReply):
    """A trace with what its page shows."""

    view: ViewReply


class UploadQuery(Input):
    """Where an upload goes."""

    group: Annotated[str, Field(description="`new` begins a group, its id adds to it")] | None = None


class UploadReply(Output):
    """A stored upload."""

    id: str
    url: str
    content: str
    group: str | None


@blueprint.get("/t/<trace_id>")
def show(trace_id: str) -> Response:
    """Serve a trace's page: progress while it is compiled, then the trace, at the same address."""
    query = parse_query(PageQuery)
    scripted = request.cookies.get(SCRIPTED) == "1"
    found = services()
    key = f"{_key(found, trace_id)}:{query!r}:{scripted}:{assets.version}"
    page, status = _pages.get(key), 200
    if page is None:
        with found.database.read() as session:
            trace = replies.whole(found, session, replies.get_trace(session, trace_id))
        view = make_view(found, trace, query, scripted=scripted)
        page, status = render_template("traces/show.html", trace=trace, view=view), 404 if view.error else 200
        if trace.status in FINAL and status == 200:
            _pages.put(key, page, len(page))
    response = Response(page, status=status, mimetype="text/html")
    response.headers["Cache-Control"] = wire.REVALIDATE
    response.headers["Vary"] = "Cookie"
    return response


@blueprint.get("/t/<trace_id>.json")
def twin(trace_id: str) -> Response:
    """Serve the page's data: the trace, and what its address shows."""
    query = parse_query(PageQuery)
    found = services()
    key = f"{_key(found, trace_id)}:{query!r}:json"
    packed = _replies.get(key)
    if packed is not None:
        return packed.response(wire.REVALIDATE)
    with found.database.read() as session:
        trace = replies.whole(found, session, replies.get_trace(session, trace_id))
    view = shown(found, trace, make_view(found, trace, query, scripted=True))
    packed = _pack(TracePage(**dict(trace), view=view))
    if trace.status in FINAL and not view.error:
        _replies.put(key, packed, len(packed.data))
    response = packed.response(wire.REVALIDATE)
    if view.error and response.status_code == 200:
        response.status_code = 404
    return response


def shown(found: Services, trace: TraceReply, view: View) -> ViewReply:
    """Tell what a page's address shows; the diff only where the page shows one."""
    told = ViewReply(address=view.address, against=view.against, mode=view.mode, error=view.error)
    manifest = trace.extended
    if view.address is None or manifest is None or trace.content is None:
        return told
    after = manifest.resolve(view.address)
    told.text = after.text
    if view.against and view.mode in ("diff", "unified") and not _is_binary(manifest, view):
        before = manifest.resolve(view.against)
        told.diff = diff_reply(found, added.open_extended(found, trace.content), before, after)
    return told


def _is_binary(manifest: Manifest, view: View) -> bool:
    binaries = {artifact.name for artifact in manifest.artifacts if artifact.binary}
    return bool(binaries & {view.address, view.against})


@endpoint(blueprint, "GET", "/traces/<trace_id>", Endpoint("A trace with its manifest and summary", TraceReply))
def read(trace_id: str) -> Response:
    """Tell everything of a trace but its texts."""
    return reply(trace_id)


def reply(trace_id: str) -> Response:
    """Answer with a trace's data; that of a finished trace is made once."""
    found = services()
    key = _key(found, trace_id)
    packed = _replies.get(key)
    if packed is None:
        with found.database.read() as session:
            trace = replies.get_trace(session, trace_id)
            packed = _pack(replies.whole(found, session, trace))
        if trace.status in FINAL:
            _replies.put(key, packed, len(packed.data))
    return packed.response(wire.REVALIDATE)


def _key(found: Services, trace_id: str) -> str:
    return f"{found.settings.home}:{trace_id}:{added.stamp(found, trace_id)}"


def _pack(trace: TraceReply) -> Packed:
    data = trace.model_dump_json(by_alias=True).encode()
    return Packed.of("application/json", data)


@endpoint(
    blueprint,
    "GET",
    "/traces/<trace_id>/passes/<path:address>",
    Endpoint("One pass, or an artifact by its name", PassReply, errors=NO_TEXTS),
)
def read_pass(trace_id: str, address: str) -> PassReply:
    """Tell what ran at an address such as ``ttgir:12`` and how large its text is."""
    found = services()
    file = open_trace(found, trace_id)
    snapshot = file.manifest.resolve(address)
    text = found.analyses.text(file, snapshot.text, snapshot.syntax)
    item = snapshot.item
    artifact = file.manifest.artifact(address)
    binary = artifact is not None and artifact.binary
    return PassReply(
        address=address,
        name=item.name if item else None,
        argument=item.argument if item else None,
        anchor=item.anchor if item else None,
        function=item.function if item else None,
        parent=item.parent if item else None,
        step=item.step if item else None,
        text=snapshot.text,
        lines=count_lines(text),
        bytes=len(text),
        syntax=snapshot.syntax,
        ir=None if binary or len(text) > MAX_INLINE else text.decode("utf-8", errors="replace"),
    )


@endpoint(
    blueprint,
    "GET",
    "/traces/<trace_id>/file",
    Endpoint("The trace as a .loupe file", MEDIA_TYPE, errors={409: "the trace is not finished"}),
)
def download(trace_id: str) -> Response:
    """Send the trace file of a finished trace."""
    found = services()
    with found.database.read() as session:
        trace = replies.get_trace(session, trace_id)
    if trace.status not in FINAL or not trace.content:
        raise ApiError(409, "This trace is not finished, so there is no file yet.")
    found.blobs.open(trace.content)  # a damaged file is told, not sent
    response = send_file(
        found.blobs.path(trace.content),
        mimetype=MEDIA_TYPE,
        as_attachment=True,
        download_name=file_name(trace),
        etag=trace.content,
        conditional=True,
    )
    response.headers["Cache-Control"] = wire.IMMUTABLE
    return response


@endpoint(
    blueprint,
    "POST",
    "/traces",
    Endpoint(
        "Upload a .loupe file",
        UploadReply,
        status=201,
        body="application/octet-stream",
        query=UploadQuery,
        errors={
            409: "the group takes no uploads",
            422: "the file is not a sound trace",
            429: "other uploads are being checked",
        },
    ),
)
def upload(query: UploadQuery) -> UploadReply:
    """Store an uploaded trace file under a permalink of its own; it never answers for a compilation."""
    trace = receive(services(), query.group)
    return UploadReply(id=trace.id, url=f"/t/{trace.id}", content=trace.content or "", group=trace.group_id)


def file_name(trace: Trace, suffix: str = SUFFIX) -> str:
    """Return the name under which a trace is saved."""
    return trace_file_name(trace.kernel, trace.target, suffix)


def trace_file_name(kernel: str | None, target: str, suffix: str = SUFFIX) -> str:
    """Return a file's name for a kernel's trace, whatever the kernel is called."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in kernel or "trace")
    return f"{safe[:80]}-{target}{suffix}"
