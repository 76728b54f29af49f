"""A trace as Markdown: what it is, and chosen snippets and diffs, each in a fence that its text cannot close."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from app.targets import COMMON
from app.unified import unified
from pipelines.analysis.bare import bare_lines
from pipelines.analysis.diff import Diff
from pipelines.trace import Manifest, Snapshot, TraceError, previous
from pipelines.triton_path.options import FIXED

# A snippet is for reading: past these it is cut, and says so.
MAX_LINES = 2000
MAX_CHARACTERS = 400_000
# How many snippets and diffs one document takes.
MAX_PARTS = 50

Range = tuple[int, int]

_RANGE = re.compile(r"L?(\d{1,9})(?:-L?(\d{1,9}))?")


@dataclass(frozen=True)
class Part:
    """A snippet of the text at ``address``, or a diff of it with the text at ``against``; lines count from 1."""

    address: str
    lines: Range | None = None
    against: str | None = None


@dataclass(frozen=True)
class Trace:
    """What a document is made from.

    ``text`` returns a text as it is shown, ``diff`` an alignment. ``link`` is the permalink's URL and ``defaults`` are
    the options' values when left out, each None where nobody knows. ``locations`` keeps locations in the texts.
    """

    manifest: Manifest
    text: Callable[[Snapshot], bytes]
    diff: Callable[[Snapshot, Snapshot], Diff]
    link: str | None = None
    defaults: Mapping[str, Any] | None = None
    locations: bool = False


def parts_of(manifest: Manifest, items: Sequence[str], lines: Sequence[str], diffs: Sequence[str]) -> list[Part]:
    """Read what is wanted: the first of ``lines`` belongs to the first item and so on; a diff is ``from..to``.

    A diff with one address is against what that pass received.

    Raises:
        TraceError: an address that names nothing, lines that are none, or too much at once.
    """
    if len(items) + len(diffs) > MAX_PARTS:
        raise TraceError(f"a document takes {MAX_PARTS} snippets and diffs")
    if len(lines) > len(items):
        raise TraceError("there are more lines than items: lines belong to the item of the same place")
    ranges = [*map(parse_lines, lines), *[None] * (len(items) - len(lines))]
    found = [Part(address, range_) for address, range_ in zip(items, ranges, strict=True)]
    for text in diffs:
        before, dots, after = text.rpartition("..")
        against = before if dots else previous(manifest, after)
        if not against:
            raise TraceError(f"{after[:100]} received nothing to compare it with: name two, as in ttgir:3..ttgir:9")
        found.append(Part(after, None, against))
    return found


def parse_lines(text: str) -> Range | None:
    """Read ``10-20``, ``L10-L20`` or ``10``; nothing is the whole text; raise TraceError for anything else."""
    if not text:
        return None
    match = _RANGE.fullmatch(text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if first < 1 or last < first:
        raise TraceError(f"{text[:100]!r} are no lines; they count from 1, as in 10-20")
    return first, last


def markdown(trace: Trace, parts: Sequence[Part]) -> str:
    """Return the document; raise TraceError for an address that has no text, or lines past its end."""
    blocks = list(_heading(trace))
    for part in parts:
        blocks += _diff(trace, part) if part.against else _snippet(trace, part)
    return "\n\n".join(blocks).replace("\0", "\ufffd") + "\n"


def fence(text: str, language: str) -> str:
    """Return a text in a fence that is longer than any run of backticks in it."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def code(text: str) -> str:
    """Return a code span that holds any text, in one line."""
    line = " ".join(text.split()) or " "
    ticks = "`" * (_longest_run(line) + 1)
    space = " " if "`" in line[0] + line[-1] else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _heading(trace: Trace) -> Iterator[str]:
    manifest = trace.manifest
    yield f"# {code(manifest.kernel.name or 'kernel')} for {manifest.target.arch}"
    facts = [("kernel file", code(manifest.kernel.file)), ("toolchain", code(manifest.toolchain.name))]
    if manifest.launch and manifest.launch.config:
        facts.append(("autotune config", code(manifest.launch.config)))
    options = ", ".join(code(f"{name}={value}") for name, value in _options(trace))
    if options:
        facts.append(("options", options))
    if manifest.resources:
        known = manifest.resources.model_dump(exclude_none=True)
        facts.append(("resources", ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in known.items())))
    if manifest.failure:
        where = manifest.failure.address or manifest.failure.stage or manifest.failure.kind
        facts.append(("failed", f"{code(where)}: {code(manifest.failure.message[:500])}"))
    if trace.link:
        facts.append(("trace", f"<{trace.link}>"))
    yield "\n".join(f"- {name}: {value}" for name, value in facts)


def _options(trace: Trace) -> Iterator[tuple[str, Any]]:
    """Yield the options that differ from their defaults, or the most used where no default is known."""
    for name, value in trace.manifest.options.items():
        if trace.defaults is None:
            if name in COMMON and value is not None:
                yield name, value
        elif name not in FIXED and name in trace.defaults and trace.defaults[name] != value:
            yield name, value


def _snippet(trace: Trace, part: Part) -> Iterator[str]:
    snapshot = _resolve(trace.manifest, part.address)
    lines = _lines(trace, snapshot)
    first, last = part.lines or (1, len(lines))
    if first > len(lines):
        raise TraceError(f"{part.address} has {len(lines)} lines, there is no line {first}")
    last = min(last, len(lines))
    shown, end = _cut(lines[first - 1 : last])
    whole = (first, first - 1 + end) == (1, len(lines))
    place = "" if whole else f"lines {first:,} to {first - 1 + end:,} of {len(lines):,}"
    anchor = f"#L{first}-L{last}" if part.lines else ""
    yield _title(trace, [snapshot], place, f"?pass={quote(part.address, ':')}&view=text{anchor}")
    yield fence("\n".join(shown), snapshot.syntax)


def _diff(trace: Trace, part: Part) -> Iterator[str]:
    before, after = _resolve(trace.manifest, part.against or ""), _resolve(trace.manifest, part.address)
    diff = trace.diff(before, after)
    old, new = ([line or "" for line in _lines(trace, side)] for side in (before, after))
    rows = list(unified(diff, old, new))
    shown, end = _cut(rows)
    words = f"+{diff.plus:,} -{diff.minus:,}" + (f", {diff.renamed:,} renamed only" if diff.renamed else "")
    if end < len(rows):
        words += f"; the first {end:,} of {len(rows):,} lines"
    view = f"?pass={quote(part.address, ':')}&against={quote(part.against or '', ':')}"
    yield _title(trace, [before, after], words, view)
    yield fence("\n".join(shown), "diff") if shown else "No line differs but for names and locations."


def _title(trace: Trace, sides: Sequence[Snapshot], words: str, view: str) -> str:
    names = " to ".join(_name(side) for side in sides)
    link = f" ([open]({trace.link}{view}))" if trace.link else ""
    return f"## {names}{', ' if words else ''}{words}{link}"


def _name(snapshot: Snapshot) -> str:
    item = snapshot.item
    return code(snapshot.address) + (f" {code(item.step or item.name)}" if item else "")


def _resolve(manifest: Manifest, address: str) -> Snapshot:
    artifact = manifest.artifact(address)
    if artifact and artifact.binary:
        raise TraceError(f"{address} is binary and has no lines to show")
    return manifest.resolve(address)


def _lines(trace: Trace, snapshot: Snapshot) -> list[str | None]:
    """Return a text's lines as an alignment counts them; None for one that is not shown."""
    text = trace.text(snapshot)
    lines: Sequence[bytes | None] = text.split(b"\n") if trace.locations else bare_lines(text, snapshot.syntax)
    return [None if line is None else line.decode("utf-8", errors="replace") for line in lines]


def _cut(lines: Sequence[str | None]) -> tuple[list[str], int]:
    """Return the lines that fit, and how many were looked at; a single line that does not fit is cut itself."""
    left = MAX_CHARACTERS
    shown: list[str] = []
    for at, line in enumerate(lines):
        if line is None:
            continue
        if len(shown) == MAX_LINES or len(line) > left:
            return shown or [line[:left]], at or 1
        left -= len(line) + 1
        shown.append(line)
    return shown, len(lines)
