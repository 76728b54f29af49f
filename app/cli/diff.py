"""``loupe diff``."""

from __future__ import annotations

import json

import click

from app.cli.options import home_option, json_option, settings
from app.cli.source import open_trace, shown_text
from app.unified import unified
from pipelines.analysis.diff import Lines, align
from pipelines.analysis.mask import line_keys
from pipelines.trace import Snapshot, TraceError
from pipelines.tracefile import TraceFile


@click.command("diff")
@click.argument("trace")
@click.argument("before")
@click.argument("after")
@home_option
@json_option
def command(trace: str, before: str, after: str, home: str | None, as_json: bool) -> None:
    """Compare two texts of a trace by line, names and locations aside: loupe diff TRACE ttgir:3 ttgir:9."""
    file = open_trace(trace, settings(home), extended=True)
    try:
        sides = [lines_of(file, file.manifest.resolve(address)) for address in (before, after)]
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


def lines_of(file: TraceFile, snapshot: Snapshot) -> Lines:
    """Return a text as it is shown, ready to be aligned; raise TraceError for a binary."""
    artifact = file.manifest.artifact(snapshot.address)
    if artifact and artifact.binary:
        raise TraceError(f"{snapshot.address} is binary and has no lines to compare")
    text = shown_text(file, snapshot)
    return Lines(text, snapshot.syntax, line_keys(text, snapshot.syntax))
