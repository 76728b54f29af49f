"""``loupe show``."""

from __future__ import annotations

import json

import click

from app.cli.options import home_option, json_option, settings
from app.cli.source import open_trace
from pipelines.dumps.sass import strip_encodings
from pipelines.trace import TraceError
from pipelines.tracefile import TraceFile


@click.command("show")
@click.argument("trace")
@click.option("--pass", "address", help="Print the IR after a pass, such as ttgir:12; 0 is the stage's input.")
@click.option("--stage", help="Print a stage's output, such as ttgir.")
@click.option(
    "--artifact", help="Print an artifact, such as ptx, sass, amdgcn, llvm-ir or cubin, or source, source:pkg/util.py."
)
@click.option("--raw", is_flag=True, help="Print SASS with its encodings.")
@home_option
@json_option
def command(trace: str, home: str | None, as_json: bool, raw: bool, **chosen: str | None) -> None:
    """Print a trace, or one text of it. TRACE is a .loupe file, a permalink or its id."""
    address, stage, artifact = chosen["address"], chosen["stage"], chosen["artifact"]
    if sum(name is not None for name in chosen.values()) > 1:
        raise click.UsageError("--pass, --stage and --artifact exclude one another")
    file = open_trace(trace, settings(home), extended=bool(address or stage))
    try:
        if stage:
            address = f"{stage}:{len(file.manifest.stage(stage).passes)}"
        if address or artifact:
            _print_text(file, address or artifact or "", as_json, raw)
        elif as_json:
            click.echo(file.manifest.model_dump_json(by_alias=True))
        else:
            from app.cli.text import describe

            click.echo(describe(file))
    except TraceError as error:
        raise click.ClickException(str(error)) from None


def _print_text(file: TraceFile, address: str, as_json: bool, raw: bool) -> None:
    snapshot = file.manifest.resolve(address)
    artifact = file.manifest.artifact(address)
    if artifact and artifact.binary:
        if as_json:
            raise click.UsageError(f"{address} is binary; print it without --json")
        click.echo(file.blob(snapshot.text), nl=False)
        return
    text = file.text(snapshot.text)
    if snapshot.syntax == "sass" and not raw:
        text = strip_encodings(text)
    if as_json:
        item = snapshot.item.model_dump(mode="json") if snapshot.item else None
        data = {"address": address, "ir": snapshot.syntax, "digest": snapshot.text, "pass": item, "text": text}
        click.echo(json.dumps(data))
    else:
        click.echo(text)
