"""``loupe export``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import click

from app.cli.options import home_option, json_option, settings
from app.cli.source import open_trace, shown_text
from app.config import Settings
from app.export_files import MANIFEST, contents, files, zipped
from pipelines.trace import TraceError
from pipelines.tracefile import TraceFile

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("export")
@click.argument("trace")
@click.option("--dir", "directory", type=click.Path(file_okay=False, path_type=Path), help="Folder to write into.")
@click.option("--zip", "zip_file", type=_FILE, help="Zip to write: the files of --dir.")
@click.option("--html", "html_file", type=_FILE, help="HTML file to write: the trace page, to be opened from disk.")
@click.option("--markdown", "markdown_file", type=_FILE, help="Markdown file to write, with the snippets chosen below.")
@click.option("--item", "items", multiple=True, help="For --markdown: a text to show, such as ttgir:12, ptx or source.")
@click.option("--lines", multiple=True, help="For --markdown: lines of the --item of the same place, such as 10-20.")
@click.option("--diff", "diffs", multiple=True, help="For --markdown: ttgir:3..ttgir:9, or ttgir:9 alone.")
@click.option("--locations", is_flag=True, help="For --markdown: keep the locations in the texts.")
@home_option
@json_option
def command(
    trace: str,
    directory: Path | None,
    zip_file: Path | None,
    html_file: Path | None,
    markdown_file: Path | None,
    items: tuple[str, ...],
    lines: tuple[str, ...],
    diffs: tuple[str, ...],
    locations: bool,
    home: str | None,
    as_json: bool,
) -> None:
    """Write a trace as files: a folder or zip numbered by pass, one HTML file, or Markdown with chosen snippets.

    TRACE is a .loupe file, a permalink or its id.
    """
    if not any((directory, zip_file, html_file, markdown_file)):
        raise click.UsageError("say what to write: --dir, --zip, --html or --markdown")
    if (items or lines or diffs or locations) and not markdown_file:
        raise click.UsageError("--item, --lines, --diff and --locations choose what --markdown shows")
    found = settings(home)
    file = open_trace(trace, found)
    told = []
    if directory:
        told.append(_write_folder(file, directory))
    if zip_file:
        told.append(_write(zip_file, zipped(contents(file)), "zip"))
    try:
        if html_file:
            told.append(_write(html_file, [_html(file, trace)], "html"))
        if markdown_file:
            text = _markdown(file, trace, found, (items, lines, diffs), locations)
            told.append(_write(markdown_file, [text.encode("utf-8", errors="replace")], "markdown"))
    except TraceError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(json.dumps({key: value for one in told for key, value in one.data.items()}))
        return
    for one in told:
        click.echo(one.words)


class Written(NamedTuple):
    """What was written, as data and in words."""

    data: dict[str, object]
    words: str


def _write_folder(file: TraceFile, root: Path) -> Written:
    if root.exists() and any(root.iterdir()):
        raise click.ClickException(f"{root} is not empty; name a new folder")
    digests = dict(files(file.manifest))
    written: list[dict[str, str | int]] = []
    for name, data in contents(file):
        _save(root / name, [data])
        if name in digests:
            written.append({"name": name, "digest": digests[name], "bytes": len(data)})
    listing: dict[str, object] = {"dir": str(root), "manifest": MANIFEST, "files": written}
    return Written(listing, f"wrote {len(written) + 1} files to {root}")


def _write(path: Path, parts: Iterable[bytes], kind: str) -> Written:
    _save(path, parts)
    return Written({kind: str(path)}, f"wrote {path}")


def _save(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file and the folders above it; raise click.ClickException where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            for part in parts:
                out.write(part)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None


def _html(file: TraceFile, name: str) -> bytes:
    from app.cli.text import summary_of
    from app.errors import ApiError
    from app.export_html import Page, render, reply_of
    from pipelines.analysis.diff import Diff, Lines, align

    known: dict[tuple[str, str], Diff] = {}

    def aligned(before: str, after: str, a: Lines, b: Lines) -> Diff:
        known[before, after] = align(a, b)
        return known[before, after]

    summary = summary_of(file, aligned)
    try:
        page = Page(
            file, reply_of(file, summary), lambda before, after: known.get((before.text, after.text)), _link(name)
        )
        return render(page)
    except ApiError as error:
        raise click.ClickException(error.message) from None


def _markdown(file: TraceFile, name: str, found: Settings, wanted: tuple[tuple[str, ...], ...], locations: bool) -> str:
    from app.cli.diff import lines_of
    from app.export_markdown import Trace, markdown, parts_of
    from pipelines.analysis.diff import align

    trace = Trace(
        manifest=file.manifest,
        text=lambda snapshot: shown_text(file, snapshot),
        diff=lambda before, after: align(*(lines_of(file, side) for side in (before, after))),
        link=_link(name),
        defaults=_defaults(found, file),
        locations=locations,
    )
    return markdown(trace, parts_of(file.manifest, *wanted))


def _defaults(found: Settings, file: TraceFile) -> dict[str, object] | None:
    from app.database import look
    from app.exports import defaults_of

    if not found.database.exists():
        return None
    with look(found.database) as session:
        return defaults_of(session, file.manifest)


def _link(name: str) -> str | None:
    return name if name.startswith(("http://", "https://")) else None
