"""``loupe diff``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import click

from app.cli.options import home_option, json_option, settings
from app.cli.source import open_trace, shown_text
from pipelines.analysis.diff import ONLY_LOCATION, Diff, Lines, Op, align
from pipelines.analysis.mask import line_keys
from pipelines.analysis.rename import CHANGED, RENAMED
from pipelines.trace import Snapshot, TraceError
from pipelines.tracefile import TraceFile

CONTEXT = 3
# A row that no hunk crosses.
BREAK = "!"
ALIKE = "\\ reads like a removed line: it moved, or a name in it means something else"


@click.command("diff")
@click.argument("trace")
@click.argument("before")
@click.argument("after")
@home_option
@json_option
def command(trace: str, before: str, after: str, home: str | None, as_json: bool) -> None:
    """Compare two texts of a trace by line, names and locations aside: loupe diff TRACE ttgir:3 ttgir:9."""
    file = open_trace(trace, settings(home))
    try:
        sides = [_lines(file, file.manifest.resolve(address)) for address in (before, after)]
    except TraceError as error:
        raise click.ClickException(str(error)) from None
    diff = align(*sides)
    if as_json:
        data = {"from": before, "to": after, **diff._asdict(), "ops": [list(op) for op in diff.ops]}
        click.echo(json.dumps(data))
        return
    click.echo(f"{before} to {after}: +{diff.plus} -{diff.minus}, {diff.renamed} renamed only")
    for line in unified(diff, *(side.text.decode("utf-8", errors="replace").split("\n") for side in sides)):
        colour = {"+": "green", "-": "red", "@": "cyan", "\\": "yellow"}.get(line[:1])
        click.echo(click.style(line, fg=colour) if colour else line)


def _lines(file: TraceFile, snapshot: Snapshot) -> Lines:
    artifact = file.manifest.artifact(snapshot.address)
    if artifact and artifact.binary:
        raise TraceError(f"{snapshot.address} is binary and has no lines to compare")
    text = shown_text(file, snapshot)
    return Lines(text, snapshot.syntax, line_keys(text, snapshot.syntax))


class Row(NamedTuple):
    """A line of a diff: how it is marked, and how many lines of each text come before it."""

    mark: str
    old: int
    new: int


def unified(diff: Diff, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield hunks as ``diff -u`` writes them, with two marks more.

    ``~`` stands before a line of the context that is only renamed. A line that starts with a backslash explains
    removed and added lines that read the same. Lines that are only locations belong to no hunk.
    """
    for hunk in _hunks(list(_rows(diff.ops))):
        yield f"@@ -{_range(hunk, '-')} +{_range(hunk, '+')} @@"
        for changed, run in groupby(hunk, key=lambda row: row.mark in "-+"):
            rows = list(run)
            yield from (row.mark + (old[row.old] if row.mark == "-" else new[row.new]) for row in rows)
            if changed:
                removed = {old[row.old] for row in rows if row.mark == "-"} - {""}
                alike = [str(row.new + 1) for row in rows if row.mark == "+" and new[row.new] in removed]
                if alike:
                    yield f"{ALIKE}: {', '.join(alike)}"


def _rows(ops: Sequence[Op]) -> Iterator[Row]:
    for op in ops:
        if op.kind == CHANGED:
            yield from (Row("-", i, op.j1) for i in range(op.i1, op.i2))
            yield from (Row("+", op.i2, j) for j in range(op.j1, op.j2))
        elif op.kind == ONLY_LOCATION:
            yield Row(BREAK, op.i1, op.j1)
        else:
            mark = "~" if op.kind == RENAMED else " "
            yield from (Row(mark, i, j) for i, j in zip(range(op.i1, op.i2), range(op.j1, op.j2), strict=True))


def _hunks(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Yield the changed rows with up to ``CONTEXT`` rows around them, those that touch as one."""
    start = end = 0
    for at, row in enumerate(rows):
        if row.mark not in "-+":
            continue
        first = next((k + 1 for k in range(at - 1, max(at - CONTEXT, 0) - 1, -1) if rows[k].mark == BREAK), None)
        first = max(at - CONTEXT, 0) if first is None else first
        if first > end or end == 0:
            if end:
                yield rows[start:end]
            start = first
        last = min(at + CONTEXT + 1, len(rows))
        end = next((k for k in range(at + 1, last) if rows[k].mark == BREAK), last)
    if end:
        yield rows[start:end]


def _range(hunk: Sequence[Row], mark: str) -> str:
    """Return ``first,count`` of the lines of one text, as ``diff -u`` counts them."""
    count = sum(row.mark in (" ", "~", mark) for row in hunk)
    before = hunk[0].old if mark == "-" else hunk[0].new
    return f"{before + 1 if count else before},{count}"
