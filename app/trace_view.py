"""What a trace page's address asks for, resolved, and the text itself for browsers without JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.added import open_extended
from app.replies import TraceReply
from app.services import Services
from pipelines.lexers import highlight_html
from pipelines.trace import MAX_ADDRESS, Manifest, Snapshot, TraceError, previous
from pipelines.tracefile import TraceFile

SCRIPTED = "scripted"

WINDOW = 2000
CONTEXT = 3

Mode = Literal["diff", "unified", "before", "text"]
Kind = Literal["same", "renamed", "add", "del", "location", "fold"]

KINDS: dict[int, Kind] = {0: "same", 1: "renamed", 3: "location"}


class PageQuery(BaseModel):
    """The state that a trace page keeps in its address; what cannot be read falls back to the default."""

    model_config = ConfigDict(extra="ignore")

    pass_: Annotated[str | None, Field(alias="pass", max_length=MAX_ADDRESS)] = None
    against: Annotated[str | None, Field(max_length=MAX_ADDRESS)] = None
    view: Literal["diff", "unified", "before", "after", "text"] | None = None
    tab: Literal["passes", "diagnostics", "resources", "about"] = "passes"
    from_: Annotated[int, Field(alias="from", ge=1, le=1 << 40)] = 1

    @field_validator("view", "tab", "from_", mode="wrap")
    @classmethod
    def _forgive(cls, value: Any, check: Callable[[Any], Any], info: Any) -> Any:
        try:
            return check(value)
        except ValueError:
            return cls.model_fields[info.field_name].default


@dataclass(frozen=True)
class Line:
    """A line to show: its number in the text shown, in the older text (unified), what it is, and its HTML."""

    number: int | None
    old: int | None
    kind: Kind
    html: Markup


@dataclass(frozen=True)
class View:
    """A page's view, for ``templates/traces/show.html``.

    ``address`` and ``against`` are None while there is nothing to show or to compare with. ``mode`` is "diff" and
    "unified" only with a counterpart. ``lines`` are for browsers without JavaScript: rows ``first`` to ``last`` of
    ``total``, counted from 1. They are left out for a browser that said with the cookie ``SCRIPTED=1`` that it fetches
    the text itself. ``error`` has a message where the address names nothing.
    """

    address: str | None
    against: str | None
    mode: Mode
    tab: str
    lines: tuple[Line, ...] = ()
    first: int = 0
    last: int = 0
    total: int = 0
    error: dict[str, str] | None = None


def make_view(services: Services, reply: TraceReply, query: PageQuery, *, scripted: bool) -> View:
    """Resolve a page's address against its trace; ``scripted`` leaves out the lines."""
    manifest = reply.extended
    if manifest is None or reply.content is None:
        return View(query.pass_, None, "text", query.tab)
    try:
        address = query.pass_ or default_address(reply, manifest)
        shown = manifest.resolve(address)
        against = query.against or previous(manifest, address)
        other = manifest.resolve(against) if against else None
    except TraceError as error:
        return View(None, None, "text", query.tab, error={"code": "not_found", "message": str(error)})
    mode = _mode(query.view, other)
    view = View(address, against, mode, query.tab)
    if scripted:
        return view
    return _fill(services, open_extended(services, reply.content), view, shown, other, query.from_)


def default_address(reply: TraceReply, manifest: Manifest) -> str:
    """Return where it failed, if that left a text, else the first pass that changed something, else what there is."""
    texts = {snapshot.address: snapshot.text for snapshot in manifest.snapshots()}
    failed = manifest.failure.address if manifest.failure else None
    if failed and (failed in texts or manifest.artifact(failed)):
        return failed
    if reply.summary:
        return next((address for address, row in reply.summary.rows.items() if row.changed), "source")
    return next((address for address in texts if _differs(manifest, address, texts)), "source")


def _differs(manifest: Manifest, address: str, texts: dict[str, str]) -> bool:
    before = previous(manifest, address)
    return before is not None and texts[before] != texts[address]


def _mode(asked: str | None, other: Snapshot | None) -> Mode:
    if other is None or asked in ("text", "after"):
        return "text"
    return {"unified": "unified", "before": "before"}.get(asked or "diff", "diff")  # type: ignore[return-value]  # values are modes


def _fill(services: Services, file: TraceFile, view: View, shown: Snapshot, other: Snapshot | None, first: int) -> View:
    binary = file.manifest.artifact(shown.address)
    if binary and binary.binary:
        return view
    if other is None or view.mode in ("text", "before"):
        side = other if view.mode == "before" and other else shown
        rows = _text_rows(services.analyses.text(file, side.text, side.syntax))
    else:
        rows = _diff_rows(services, file, other, shown)
    start = (min(first, len(rows)) - 1) // WINDOW * WINDOW
    window = rows[start : start + WINDOW]
    return View(
        view.address,
        view.against,
        view.mode,
        view.tab,
        lines=_highlight(window, shown),
        first=start + 1,
        last=start + len(window),
        total=len(rows),
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A line before it is highlighted; a fold's text is words."""

    number: int | None
    old: int | None
    kind: Kind
    text: str


def _split(text: bytes) -> list[str]:
    return text.decode("utf-8", errors="replace").split("\n")


def _text_rows(text: bytes) -> list[Row]:
    return [Row(number, None, "same", line) for number, line in enumerate(_split(text), 1)]


def _diff_rows(services: Services, file: TraceFile, before: Snapshot, after: Snapshot) -> list[Row]:
    diff = services.analyses.diff(file, before, after)
    old = _split(services.analyses.text(file, before.text, before.syntax))
    new = _split(services.analyses.text(file, after.text, after.syntax))
    rows: list[Row] = []
    for index, (kind, i1, i2, j1, j2) in enumerate(diff.ops):
        if kind == 2:
            rows += [Row(None, i + 1, "del", old[i]) for i in range(i1, i2)]
            rows += [Row(j + 1, None, "add", new[j]) for j in range(j1, j2)]
        elif kind == 3:
            rows += [Row(j + 1, None, "location", new[j]) for j in range(j1, j2)]
        else:
            paired = [Row(j + 1, i + 1, KINDS[kind], new[j]) for i, j in zip(range(i1, i2), range(j1, j2), strict=True)]
            rows += _fold(paired, at_start=index == 0, at_end=index == len(diff.ops) - 1) if kind == 0 else paired
    return rows


def _fold(rows: list[Row], *, at_start: bool, at_end: bool) -> list[Row]:
    head, tail = (0 if at_start else CONTEXT), (0 if at_end else CONTEXT)
    hidden = len(rows) - head - tail
    if hidden < 2:
        return rows
    fold = Row(None, None, "fold", f"{hidden} unchanged lines")
    return [*rows[:head], fold, *rows[len(rows) - tail :]]


def _highlight(rows: Sequence[Row], shown: Snapshot) -> tuple[Line, ...]:
    html = highlight_html([row.text for row in rows], shown.syntax)
    return tuple(
        Line(row.number, row.old, row.kind, Markup.escape(row.text) if row.kind == "fold" else Markup(line))  # noqa: S704 - Pygments escapes
        for row, line in zip(rows, html, strict=True)
    )
