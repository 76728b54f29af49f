"""The texts of a trace: themselves, two of them aligned, and search through all."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint, Response
from pydantic import Field

from app import replies, search, wire
from app.added import open_extended
from app.analyses import revision
from app.api import Endpoint, Input, Output, endpoint
from app.errors import ApiError
from app.services import Services, services
from app.wire import Encoding
from pipelines.analysis.diff import Op
from pipelines.analysis.mask import count_lines
from pipelines.trace import MAX_ADDRESS, Manifest, Snapshot, Syntax
from pipelines.tracefile import TraceFile

blueprint = Blueprint("texts", __name__)

NO_TEXTS = {409: "the trace has no texts yet, or ended without any"}


class TextQuery(Input):
    """``raw=1`` keeps the encodings in SASS."""

    raw: bool = False


class DiffQuery(Input):
    """Two addresses: ``from=ttgir:3&to=ttgir:9``."""

    from_: Annotated[str, Field(alias="from", max_length=MAX_ADDRESS)]
    to: Annotated[str, Field(max_length=MAX_ADDRESS)]


class Side(Output):
    """One side of a diff."""

    address: str
    text: str
    lines: int


class DiffReply(Output):
    """Two texts aligned.

    Each op is [kind, i1, i2, j1, j2]: lines [i1, i2) of the first text against [j1, j2) of the second, counted from 0.
    Kind 0 is the same, 1 only renamed, 2 removed and added, 3 lines that are only location. ``plus``, ``minus`` and
    ``renamed`` leave locations out. ``fallback``: the texts are too long, only their common head and tail are aligned.
    """

    from_: Annotated[Side, Field(alias="from")]
    to: Side
    ops: list[Op]
    plus: int
    minus: int
    renamed: int
    fallback: bool


class SearchQuery(Input):
    """``q`` are words, or with ``regex=1`` a regular expression in Python's syntax."""

    q: Annotated[str, Field(min_length=1, max_length=search.MAX_QUERY)]
    regex: bool = False


class HitReply(Output):
    """A line, counted from 1, at the first address that shows this text."""

    address: str
    line: int
    text: str


class SearchReply(Output):
    """Hits in the order of the pipeline; ``truncated`` where there may be more."""

    hits: list[HitReply]
    truncated: bool


def open_trace(found: Services, trace_id: str) -> TraceFile:
    """Return the stored file behind a permalink, LLVM's passes with it; raise ApiError 409 while there is none."""
    with found.database.read() as session:
        trace = replies.get_trace(session, trace_id)
    if trace.content is None:
        words = "is still being compiled" if trace.status in ("queued", "running") else "ended without any IR"
        raise ApiError(409, f"This trace {words}: it has no texts.")
    return open_extended(found, trace.content)


@endpoint(
    blueprint,
    "GET",
    "/traces/<trace_id>/texts/<digest>",
    Endpoint(
        "A text by its digest; a cubin as bytes",
        "text/plain",
        also=("application/octet-stream",),
        query=TextQuery,
        errors=NO_TEXTS,
    ),
)
def read_text(trace_id: str, digest: str, query: TextQuery) -> Response:
    """Send a text; it never changes, so clients may keep it for good."""
    found = services()
    file = open_trace(found, trace_id)
    manifest = file.manifest
    if digest not in manifest.digests():
        raise ApiError(404, f"This trace has no text {digest[:64]!r}.")
    if any(artifact.binary and artifact.digest == digest for artifact in manifest.artifacts):
        return wire.send(
            digest,
            "application/octet-stream",
            lambda encoding: wire.encode(found.analyses.text(file, digest, "text"), encoding),
            wire.IMMUTABLE,
        )
    syntax = syntax_of(manifest, digest)
    plain = syntax == "sass" and not query.raw
    key = f"{digest}:plain:{revision()}" if plain else digest

    def body(encoding: Encoding) -> bytes:
        kept = found.cache.get("wire", f"{key}:{encoding}")
        if kept is None:
            kept = wire.encode(found.analyses.text(file, digest, syntax, raw=not plain), encoding)
            found.cache.put("wire", f"{key}:{encoding}", kept)
        return kept

    # The plain form of SASS depends on the parser, so it is asked for again.
    return wire.send(key, "text/plain; charset=utf-8", body, wire.REVALIDATE if plain else wire.IMMUTABLE)


@endpoint(
    blueprint,
    "GET",
    "/traces/<trace_id>/diff",
    Endpoint(
        "Two texts of a trace, aligned by line",
        DiffReply,
        query=DiffQuery,
        errors={409: f"{NO_TEXTS[409]}, or an address is binary"},
    ),
)
def read_diff(trace_id: str, query: DiffQuery) -> Response:
    """Align two texts with names, labels and locations masked."""
    found = services()
    file = open_trace(found, trace_id)
    before, after = file.manifest.resolve(query.from_), file.manifest.resolve(query.to)
    key = f"{before.address}:{before.text}:{after.address}:{after.text}:{revision()}"

    def body(encoding: Encoding) -> bytes:
        return wire.encode(diff_reply(found, file, before, after).model_dump_json(by_alias=True).encode(), encoding)

    return wire.send(wire.tag(key), "application/json", body, wire.REVALIDATE)


def diff_reply(found: Services, file: TraceFile, before: Snapshot, after: Snapshot) -> DiffReply:
    """Return a diff as the API tells it; raise ApiError 409 for binaries."""
    for side in (before, after):
        artifact = file.manifest.artifact(side.address)
        if artifact and artifact.binary:
            raise ApiError(409, f"{side.address} is binary and has no lines to compare.")
    diff = found.analyses.diff(file, before, after)
    sides = [
        Side(address=s.address, text=s.text, lines=count_lines(found.analyses.text(file, s.text, s.syntax)))
        for s in (before, after)
    ]
    return DiffReply(
        from_=sides[0],
        to=sides[1],
        ops=diff.ops,
        plus=diff.plus,
        minus=diff.minus,
        renamed=diff.renamed,
        fallback=diff.fallback,
    )


@endpoint(
    blueprint,
    "GET",
    "/traces/<trace_id>/search",
    Endpoint(
        "Search all texts of a trace",
        SearchReply,
        query=SearchQuery,
        errors={**NO_TEXTS, 429: "other searches are running"},
    ),
)
def read_search(trace_id: str, query: SearchQuery) -> SearchReply:
    """Find lines in the source, all passes and the artifacts."""
    found = services()
    file = open_trace(found, trace_id)
    find = search.expression if query.regex else search.words
    texts = search.shown_texts(file.manifest, lambda item: found.analyses.text(file, item.text, item.syntax))
    result = find(texts, query.q)
    return SearchReply(hits=[HitReply(**hit._asdict()) for hit in result.hits], truncated=result.truncated)


def syntax_of(manifest: Manifest, digest: str) -> Syntax:
    """Return the language of a text."""
    if any(digest == snapshot.text for snapshot in manifest.sources()):
        return "python"
    name = next((artifact.name for artifact in manifest.artifacts if artifact.digest == digest), None)
    return manifest.resolve(name).syntax if name else "mlir"
