"""``loupe kernels``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from app.cli.files import read_files
from app.cli.options import json_option
from pipelines.kernels.discover import Discovery, FoundKernel, Reading, discover
from pipelines.kernels.found import FoundArgument

ENTRY = "File of a package to start with; left out where only one has kernels."


@click.command("kernels")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True))
@click.option("--entry", help=ENTRY)
@json_option
def command(paths: tuple[str, ...], entry: str | None, as_json: bool) -> None:
    """List a file's kernels and their arguments, with a guess for each. Runs nothing.

    A guess is what `loupe compile` takes an argument for that is neither given with --arg or --const nor passed by
    the file's own launch code.
    """
    body = read_files(paths, entry)
    files = body.get("files") or {}
    file = body["file"] or "kernel.py"
    found = discover(body.get("source") or files.get(file, ""), file, Reading(files.get))
    if as_json:
        click.echo(found.model_dump_json())
        return
    if found.error:
        at = f"{file}:{found.error.line}: " if found.error.line else ""
        raise click.ClickException(f"{at}{found.error.message}")
    click.echo("\n".join(lines(found)) or f"{file} has no kernel: define one with @triton.jit")


def lines(found: Discovery) -> Iterator[str]:
    """Yield what is found as text: a heading for each kernel, a line for each argument."""
    for number, kernel in enumerate(found.kernels):
        if number:
            yield ""
        yield f"{kernel.name}  {', '.join(facts(kernel))}"
        if not kernel.helper:
            yield from _table(kernel.arguments)
    if found.imported:
        yield ""
    for item in found.imported:
        yield f"{item.name}  launched here, defined in {item.module}"


def facts(kernel: FoundKernel) -> Iterator[str]:
    """Yield what is known of a kernel in a few words each."""
    yield f"line {kernel.line}"
    if kernel.within:
        yield f"in {kernel.within}"
    if kernel.held:
        yield f"held by {' and '.join(kernel.held)}"
    if kernel.declared:
        yield "declared by its decorator"
    else:
        yield (
            "launched by the source"
            if kernel.launched
            else "a helper"
            if kernel.helper
            else "not launched by the source"
        )
    if kernel.gluon:
        yield "Gluon"
    if kernel.tuning:
        known = len(kernel.tuning.configs)
        count = f"{known} configs" if not kernel.tuning.computed else f"configs computed, {known} written out"
        yield f"autotuned: {count}" + (f" by {' '.join(kernel.tuning.key)}" if kernel.tuning.key else "")
    if kernel.heuristics:
        yield f"heuristics fill {' '.join(kernel.heuristics)}"


def _table(arguments: tuple[FoundArgument, ...]) -> Iterator[str]:
    rows = [(item.name, item.annotation or "-", *_guess(item)) for item in arguments]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield f"  {'  '.join([*cells, row[3]])}".rstrip()


def _guess(argument: FoundArgument) -> tuple[str, str]:
    guess = argument.guess
    if guess is None:
        return "-", "takes any number of values: launch code has to pass them"
    if guess.origin == "heuristic":
        return "-", guess.why
    return guess.value, guess.why if guess.origin != "guessed" else f"guessed: {guess.why}"
