"""A trace as one HTML file that opens from disk: the trace page with all that it shows, and no way out.

The file carries the ``.loupe`` file itself, whose texts are compressed each with the one before it, and beside it what
the server computes: the summary, and the alignment of every pass with what it received.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jinja2
import zstandard
from markupsafe import Markup

from app.assets import assets
from app.config import TEMPLATES
from app.replies import TraceReply
from app.trace_view import View, default_address
from pipelines.addedfile import AddedFile
from pipelines.analysis.diff import Diff
from pipelines.analysis.summary import Summary
from pipelines.dumps.sass import strip_encodings
from pipelines.trace import Manifest, Snapshot, TraceError, predecessors
from pipelines.tracefile import FrameFile, TraceFile

# A browser takes such a page as a whole; the largest gallery kernel has an eightieth.
MAX_FILE = 32 << 20
MAX_SOURCE = 64 << 10

SCRIPTS = ("theme-early.js", "export.js")
FILES = (*SCRIPTS, "export-worker.js", "export.css")
LEVEL = 9

_ENDING = re.compile(r"<(/(?:script|style)|!--)", re.IGNORECASE)


class TooLargeError(TraceError):
    """A trace that is too large for one page."""


DiffOf = Callable[[Snapshot, Snapshot], Diff | None]


@dataclass(frozen=True)
class Page:
    """What a page is made from: ``diff_of`` returns an alignment or None where the browser shall make it.

    ``link`` is the permalink's URL, None where nobody knows; ``added`` holds LLVM's passes where the reply has them.
    """

    file: TraceFile
    reply: TraceReply
    diff_of: DiffOf
    link: str | None = None
    added: AddedFile | None = None

    @property
    def files(self) -> list[FrameFile]:
        """What holds the texts."""
        return [self.file, self.added] if self.added else [self.file]


def render(page: Page) -> bytes:
    """Return the HTML, the same for the same trace and build.

    Raises:
        TooLargeError: the trace is too large for one page.
        ApiError: the front end is not built.
    """
    size = sum(len(file.data) for file in page.files)
    if size > MAX_FILE:
        words = f"This trace has {size >> 20} MB even when compressed: too large for one HTML file."
        raise TooLargeError(f"{words} Take the .loupe file or the zip.")
    manifest, trace = page.file.manifest, _offline(page.reply)
    files = {name: Markup(_inline(assets.text(name))) for name in FILES}  # noqa: S704 - our own build
    nonce = _nonce(page, files)
    html = (
        _environment()
        .get_template("exports/trace.html")
        .render(
            trace=trace,
            view=View(default_address(trace, manifest), None, "diff", "passes"),
            files=files,
            csp_nonce=lambda: nonce,
            policy=_policy(files, nonce),
            archive=_base64(page.file.data),
            added=_base64(page.added.data) if page.added else None,
            extra=_base64(_pack(_extra(page, trace))),
            link=page.link,
            date=trace.created,
            source=_source(page.file),
        )
    )
    return html.encode("utf-8", errors="replace")


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


def reply_of(file: TraceFile, summary: Summary | None) -> TraceReply:
    """Describe a trace that no server knows."""
    manifest = file.manifest
    return TraceReply(
        id=file.content[:22],
        url="",
        group=None,
        status=manifest.status,
        created="",
        kernel=manifest.kernel.name,
        target=manifest.target.arch,
        config=manifest.launch.config if manifest.launch else None,
        content=file.content,
        cached=False,
        pending=(),
        failure=manifest.failure,
        resources=manifest.resources,
        manifest=manifest,
        summary=summary,
        times=None,
    )


def _offline(reply: TraceReply) -> TraceReply:
    """Leave out what only a server can do: its pages, the group, and what was never asked for."""
    asked: dict[str, Any] = {"url": "", "group": None}
    for name in ("llvm_passes", "pass_times"):
        addendum = getattr(reply, name)
        asked[name] = addendum if addendum and addendum.status == "done" else None
    return reply.model_copy(update=asked)


def _extra(page: Page, trace: TraceReply) -> dict[str, Any]:
    """Return what static/src/export/protocol.js describes."""
    manifest = page.file.manifest
    shown = {"id", "status", "group", "manifest", "summary", "pending", "llvm_passes"}
    told = trace.model_dump(mode="json", by_alias=True, include=shown)
    sass = manifest.artifact("sass")
    plain = {}
    if sass:
        plain[sass.digest] = strip_encodings(page.file.blob(sass.digest)).decode("utf-8", errors="replace")
    return {"trace": told, "diffs": _diffs(page, trace.extended or manifest), "plain": plain}


def _diffs(page: Page, manifest: Manifest) -> dict[str, Any]:
    """Return every pass's alignment with what it received, by the numbers of the two texts."""
    numbers: dict[str, int] = {}
    for number, name in enumerate(name for file in page.files for name in file.digests()):
        numbers.setdefault(name, number)
    texts = {snapshot.address: snapshot for snapshot in manifest.snapshots()}
    found: dict[str, Any] = {}
    for address, received in predecessors(manifest).items():
        after, before = texts.get(address), texts.get(received or "")
        if after is None or before is None or before.text == after.text:
            continue
        key = f"{numbers[before.text]} {numbers[after.text]}"
        diff = page.diff_of(before, after) if key not in found else None
        if diff:
            runs = [value for op in diff.ops for value in (op.kind, op.i2 - op.i1, op.j2 - op.j1)]
            found[key] = [diff.plus, diff.minus, diff.renamed, int(diff.fallback), runs]
    return found


def _pack(data: dict[str, Any]) -> bytes:
    return zstandard.ZstdCompressor(level=LEVEL).compress(json.dumps(data, separators=(",", ":")).encode())


def _base64(data: bytes) -> Markup:
    return Markup(base64.b64encode(data).decode())  # noqa: S704 - base64 has no markup


def _inline(text: str) -> str:
    """Keep a script or style from ending its element; inside strings a backslash there changes nothing."""
    return _ENDING.sub(r"<\\\1", text).strip()


def _nonce(page: Page, files: dict[str, Markup]) -> str:
    """Return the nonce of style elements; no text of the trace can hold it, since it follows from all of them."""
    return hashlib.sha256("\n".join([*(file.content for file in page.files), *files.values()]).encode()).hexdigest()[
        :32
    ]


def _policy(files: dict[str, Markup], nonce: str) -> str:
    """Allow the page's own scripts and styles and its worker, and no request at all."""
    hashes = (base64.b64encode(hashlib.sha256(files[name].encode()).digest()).decode() for name in SCRIPTS)
    scripts = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'nonce-{nonce}'; worker-src blob:; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _source(file: TraceFile) -> str | None:
    text = file.text(file.manifest.kernel.source)
    return text if len(text) <= MAX_SOURCE else None
