"""Traces as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pipelines.analysis.mask import line_keys
from pipelines.analysis.summary import AlignOf, Row, Summary, summarize
from pipelines.dumps.sass import strip_encodings
from pipelines.trace import Argument, Manifest, Pass, Stage
from pipelines.tracefile import TraceFile

if TYPE_CHECKING:
    from app.models import Trace

NAME_WIDTH = 44


def summary_of(file: TraceFile, align_of: AlignOf | None = None) -> Summary:
    """Compute what every pass of a trace changed; ``align_of`` as in ``summarize``."""
    sass = file.manifest.artifact("sass")

    def shown(name: str) -> bytes:
        return strip_encodings(file.blob(name)) if sass and name == sass.digest else file.blob(name)

    return summarize(file.manifest, shown, lambda _name, text, syntax: line_keys(text, syntax), align_of)


def describe(file: TraceFile) -> str:
    """Return a trace as a table: stages and passes, artifacts, resources, and why it failed."""
    manifest, rows = file.manifest, summary_of(file).rows
    lines = [
        f"{manifest.kernel.name or 'kernel'} for {manifest.target.arch}: {manifest.status}, {manifest.toolchain.name}"
    ]
    if manifest.launch and manifest.launch.config:
        lines.append(f"config {manifest.launch.config}")
    lines += signature(manifest)
    for stage in manifest.stages:
        lines += ["", *_stage(stage, rows)]
    lines += ["", *_artifacts(manifest, rows)]
    resources = _resources(manifest)
    if resources:
        lines += ["", resources]
    return "\n".join([*lines, *failure(file)])


def signature(manifest: Manifest) -> Iterator[str]:
    """Yield the arguments where some of them are guessed, and which."""
    arguments = manifest.kernel.arguments
    if not any(item.guessed for item in arguments):
        return
    yield "the signature is guessed from how the kernel uses its arguments:"
    width = max(len(item.name) for item in arguments)
    for item in arguments:
        yield f"  {item.name.ljust(width)}  {_written(item)}{'  guessed' if item.guessed else ''}"


def _written(item: Argument) -> str:
    """Write an argument as ``--arg`` and ``--const`` take it."""
    if item.members:
        inner = ", ".join(_written(member) for member in item.members)
        return f"({inner},)" if len(item.members) == 1 else f"({inner})"
    if item.type == "constexpr":
        return str(item.value)
    return f"{item.type}:{item.divisibility}" if item.divisibility else item.type


COLUMNS = ("kernel", "target", "config", "status", "registers", "spills", "shared", "instructions", "permalink")


def table(traces: Sequence[Trace], manifests: Sequence[Manifest | None]) -> list[str]:
    """Return a line for each trace below one of headings; shared memory is bytes, spills are too, registers on AMD."""
    rows = [COLUMNS, *(_cells(trace, manifest) for trace, manifest in zip(traces, manifests, strict=True))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cells(trace: Trace, manifest: Manifest | None) -> tuple[str, ...]:
    found = manifest.resources if manifest else None
    counts = (found.spill_stores, found.spill_loads, found.vgpr_spills, found.sgpr_spills) if found else ()
    known = [count for count in counts if count is not None]
    spills = sum(known) if known else None
    numbers = (found.registers, spills, found.shared, found.instructions) if found else (None,) * 4
    cells = ("-" if number is None else str(number) for number in numbers)
    return trace.kernel or "kernel", trace.target, trace.config or "-", trace.status, *cells, f"/t/{trace.id}"


def _stage(stage: Stage, rows: dict[str, Row]) -> Iterator[str]:
    told = [(item, rows.get(f"{stage.name}:{item.ordinal}")) for item in stage.passes]
    changed = sum(row is not None and row.changed for _, row in told)
    yield f"{stage.name}: {len(told)} passes, {changed} changed something"
    for item, row in told:
        yield f"  {item.ordinal:>4}  {_name(item):<{NAME_WIDTH}}  {_counts(item, row)}".rstrip()


def _name(item: Pass) -> str:
    name = f"{item.name} / {item.step}" if item.step else item.name
    name = ("  " if item.parent else "") + name
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 1] + "…"


def _counts(item: Pass, row: Row | None) -> str:
    if item.failed:
        return "failed"
    if row is None:
        return "left no IR"
    if not row.changed:
        return "renamed only" if row.renamed else ""
    return f"+{row.plus} -{row.minus}  ({row.lines} lines)"


def _artifacts(manifest: Manifest, rows: dict[str, Row]) -> Iterator[str]:
    for artifact in manifest.artifacts:
        row = rows.get(artifact.name)
        yield f"{artifact.name:<12}  " + ("binary" if row is None else f"{row.lines} lines")


def _resources(manifest: Manifest) -> str:
    found = manifest.resources
    if found is None:
        return ""
    words = [
        (found.registers, "registers"),
        (found.agprs, "AGPRs of them"),
        (found.sgprs, "SGPRs"),
        (found.shared, "bytes shared"),
        (found.stack, "bytes stack"),
        (found.vgpr_spills, "VGPRs spilled"),
        (found.sgpr_spills, "SGPRs spilled"),
        (found.occupancy, "waves a SIMD"),
        (found.spill_stores, "bytes spill stores"),
        (found.spill_loads, "bytes spill loads"),
        (found.instructions, "instructions"),
    ]
    return ", ".join(f"{value} {unit}" for value, unit in words if value is not None)


def failure(file: TraceFile) -> Iterator[str]:
    """Yield why a trace failed: the message, and the user's line that it is about."""
    manifest = file.manifest
    if manifest.failure is None:
        return
    where = manifest.failure.address or manifest.failure.stage
    yield f"failed{f' in {where}' if where else ''}: {manifest.failure.message}"
    names = {manifest.kernel.file: manifest.kernel.source, **{item.name: item.digest for item in manifest.kernel.files}}
    told = [item for item in manifest.diagnostics if item.severity == "error" and item.line and item.file in names]
    texts = {name: file.text(names[name]).split("\n") for name in {item.file for item in told if item.file}}
    for item in told:
        if item.file and item.line:
            source = texts[item.file]
            yield from excerpt(source, item.file, item.line, item.column, item.message)
    if manifest.failure.hint:
        yield manifest.failure.hint


def excerpt(source: Sequence[str], file: str, line: int, column: int | None, message: str) -> Iterator[str]:
    """Yield a line of the source with a mark below it; line and column count from 1."""
    if not 1 <= line <= len(source):
        return
    first = message.split("\n", 1)[0]
    yield f"{file}:{line}{f':{column}' if column else ''}: {first}"
    yield f"  {line:>5} | {source[line - 1]}"
    if column and column <= len(source[line - 1]) + 1:
        yield f"        | {' ' * (column - 1)}^"
