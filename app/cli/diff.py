"""``loupe diff``."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from app.cli.options import home_option, json_option, settings
from app.cli.source import open_trace
from pipelines.analysis.diff import Diff, Lines, align
from pipelines.analysis.mask import line_keys
from pipelines.dumps.sass import strip_encodings
from pipelines.trace import Snapshot, TraceError
from pipelines.tracefile import TraceFile

CONTEXT = 3
CHANGED = 2


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
    for line in _unified(diff, *(side.text.decode("utf-8", errors="replace").split("\n") for side in sides)):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.echo(click.style(line, fg=colour) if colour else line)


def _lines(file: TraceFile, snapshot: Snapshot) -> Lines:
    artifact = file.manifest.artifact(snapshot.address)
    if artifact and artifact.binary:
        raise TraceError(f"{snapshot.address} is binary and has no lines to compare")
    text = file.blob(snapshot.text)
    if snapshot.syntax == "sass":
        text = strip_encodings(text)
    return Lines(text, snapshot.syntax, line_keys(text, snapshot.syntax))


def _unified(diff: Diff, old: list[str], new: list[str]) -> Iterator[str]:
    """Yield hunks as ``diff -u`` writes them; only changed lines count as changes."""
    last = 0
    for position, op in enumerate(diff.ops):
        if op.kind != CHANGED:
            continue
        start = max(last, op.j1 - CONTEXT)
        if last == 0 or start > last:
            yield f"@@ -{op.i1 + 1} +{op.j1 + 1} @@"
        yield from (f" {line}" for line in new[start : op.j1])
        yield from (f"-{line}" for line in old[op.i1 : op.i2])
        yield from (f"+{line}" for line in new[op.j1 : op.j2])
        following = next((other.j1 for other in diff.ops[position + 1 :] if other.kind == CHANGED), len(new))
        last = min(op.j2 + CONTEXT, following)
        yield from (f" {line}" for line in new[op.j2 : last])
