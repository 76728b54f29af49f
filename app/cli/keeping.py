"""What ``capture``, ``import`` and ``push`` share: from names to traces, to where they are kept, to what is printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from app.cli.remote import Server
from app.cli.source import open_trace
from app.config import Settings
from app.recordings import Item, Read, keep, read_recording
from app.services import Services
from app.traces import trace_file_name
from pipelines.trace import TraceError
from pipelines.tracefile import SUFFIX, TraceFile
from pipelines.triton_path.recording import RecordingError

COLUMNS = ("kernel", "target", "config", "status", "registers", "kept at")


@dataclass(frozen=True)
class Kept:
    """A trace and where it is now: a permalink, or a file; ``group`` is the page of the traces that it belongs to."""

    item: Item
    where: str
    group: str | None = None


def gather(names: Iterable[str], settings: Settings, *, permalinks: bool) -> Read:
    """Return the traces that names stand for: ``.loupe`` files, folders of them, recordings, and ``permalinks``.

    Raises:
        click.ClickException: a name stands for none, or a file is no sound trace.
    """
    read = Read()
    for name in names:
        path = Path(name)
        if path.is_dir():
            found = _folder(path, settings)
            read.items += found.items
            read.refused += found.refused
        elif path.is_file() or permalinks:
            read.items.append(_item(open_trace(name, settings), name))
        else:
            raise click.ClickException(f"{name}: there is no such file or folder")
    return read


def _folder(path: Path, settings: Settings) -> Read:
    files = sorted(path.glob(f"*{SUFFIX}"))
    if files:
        return Read([_item(open_trace(str(file), settings), str(file)) for file in files])
    try:
        found = read_recording(path, settings)
    except (RecordingError, TraceError) as error:
        raise click.ClickException(str(error)) from None
    if not found.items and not found.refused:
        raise click.ClickException(f"{path} holds no {SUFFIX} files and no recording")
    return found


def _item(file: TraceFile, name: str) -> Item:
    return Item(name, file.manifest, file.data, file.content)


def keep_here(items: Sequence[Item], settings: Settings) -> list[Kept]:
    """Store traces in the local home."""
    services = Services.open(settings)
    try:
        traces = keep(services, items)
    finally:
        services.close()
    return [
        Kept(item, f"/t/{trace.id}", f"/g/{trace.group_id}" if trace.group_id else None)
        for item, trace in zip(items, traces, strict=True)
    ]


def keep_remote(items: Sequence[Item], server: Server) -> list[Kept]:
    """Send traces to a server; those of one autotuner make a group there."""
    kept = []
    groups: dict[str, str] = {}
    sizes = [item.group for item in items]
    for item in items:
        wanted = groups.get(item.group, "new") if item.group and sizes.count(item.group) > 1 else None
        sent = server.send(item.data, item.name, wanted)
        if item.group and sent.group:
            groups[item.group] = sent.group
        kept.append(Kept(item, sent.url, server.group_url(sent.group) if sent.group else None))
    return kept


def keep_files(items: Sequence[Item], folder: Path) -> list[Kept]:
    """Write ``.loupe`` files into a folder, which is made; no file there is written over."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = []
    for item in items:
        name = trace_file_name(item.manifest.kernel.name, item.manifest.target.arch)
        stem, path, number = name.removesuffix(SUFFIX), folder / name, 1
        while path.exists():
            number += 1
            path = folder / f"{stem}-{number}{SUFFIX}"
        path.write_bytes(item.data)
        kept.append(Kept(item, str(path)))
    return kept


def show(
    kept: Sequence[Kept], refused: Sequence[str], *, as_json: bool, out: Callable[[str], Any] = click.echo
) -> None:
    """Print what was kept, as a table through ``out`` or as JSON, and on standard error what was refused."""
    if as_json:
        click.echo(json.dumps({"traces": [_data(each) for each in kept], "refused": list(refused)}))
    elif kept:
        rows = [COLUMNS, *(_cells(each) for each in kept)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            out("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        for group in dict.fromkeys(each.group for each in kept if each.group):
            members = [each for each in kept if each.group == group]
            out(f"{group}: the {len(members)} configs of {members[0].item.manifest.kernel.name}")
    for reason in refused:
        click.echo(f"refused: {reason}", err=True)


def _cells(kept: Kept) -> tuple[str, ...]:
    manifest = kept.item.manifest
    registers = manifest.resources.registers if manifest.resources else None
    config = manifest.launch.config if manifest.launch else None
    shown = "-" if registers is None else str(registers)
    return manifest.kernel.name, manifest.target.arch, config or "-", manifest.status, shown, kept.where


def _data(kept: Kept) -> dict[str, Any]:
    manifest = kept.item.manifest
    return {
        "kernel": manifest.kernel.name,
        "file": manifest.kernel.file,
        "target": manifest.target.arch,
        "config": manifest.launch.config if manifest.launch else None,
        "status": manifest.status,
        "content": kept.item.content,
        "compiled": kept.item.compiled,
        "kept_at": kept.where,
        "group": kept.group,
    }
