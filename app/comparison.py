"""Traces side by side: rows of what was asked for and what came out, and whether the traces agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from app.api import Output
from app.replies import TraceReply
from pipelines.trace import Argument, Manifest, Resources

KB = 1024


class Row(Output):
    """One fact of every trace, in the group's order; None where a trace does not tell it (yet).

    ``numbers`` holds what the values' words were made of, for bars. ``differs`` where two known values do.
    """

    label: str
    hint: str | None = None
    values: tuple[str | None, ...]
    numbers: tuple[float | None, ...] | None = None
    differs: bool


class Section(Output):
    """Rows of one kind."""

    title: str
    rows: tuple[Row, ...]


class _Fact(NamedTuple):
    field: str
    label: str
    words: Callable[[float], str]
    hint: str | None = None


def count_words(value: float) -> str:
    """Return ``1,742``."""
    return f"{value:,.0f}"


def byte_words(value: float) -> str:
    """Return ``512 B`` or ``24.0 KB``."""
    return f"{value:,.0f} B" if value < KB else f"{value / KB:,.1f} KB"


def time_words(value: float) -> str:
    """Return ``3.2 ms``, ``120 ms`` or ``1.84 s``."""
    if value < 0.01:
        return f"{value * 1000:.1f} ms"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


RESOURCES = (
    _Fact("registers", "registers", count_words, "a thread; VGPRs on AMD"),
    _Fact("spill_stores", "spill stores", byte_words, "a thread"),
    _Fact("spill_loads", "spill loads", byte_words, "a thread"),
    _Fact("stack", "stack", byte_words, "a thread; scratch on AMD"),
    _Fact("shared", "shared memory", byte_words, "a block; LDS on AMD"),
    _Fact("constant", "constant memory", byte_words),
    _Fact("barriers", "barriers", count_words),
    _Fact("instructions", "machine instructions", count_words),
    _Fact("agprs", "AGPRs", count_words, "of the VGPRs"),
    _Fact("sgprs", "SGPRs", count_words, "a wave"),
    _Fact("vgpr_spills", "VGPRs spilled", count_words),
    _Fact("sgpr_spills", "SGPRs spilled", count_words),
    _Fact("occupancy", "occupancy", count_words, "waves a SIMD, by registers"),
)
assert {fact.field for fact in RESOURCES} == set(Resources.model_fields)  # noqa: S101 - a new resource needs a row


def compare(traces: Sequence[TraceReply]) -> tuple[Section, ...]:
    """Return the sections that have a row, in the order in which they are read."""
    manifests = [trace.manifest for trace in traces]
    found = (
        Section(title="Resources", rows=tuple(_resources(traces))),
        Section(title="Passes", rows=tuple(_passes(traces))),
        Section(title="Stage times", rows=tuple(_times(traces))),
        Section(title="Constexprs", rows=tuple(_arguments(manifests, constexpr=True))),
        Section(title="Arguments", rows=tuple(_arguments(manifests, constexpr=False))),
        Section(title="Options", rows=tuple(_options(manifests))),
    )
    return tuple(section for section in found if section.rows)


def _resources(traces: Sequence[TraceReply]) -> Iterator[Row]:
    for fact in RESOURCES:
        numbers = [getattr(trace.resources, fact.field, None) for trace in traces]
        if any(number is not None for number in numbers):
            yield _number_row(fact.label, numbers, fact.words, fact.hint)


def _passes(traces: Sequence[TraceReply]) -> Iterator[Row]:
    names = _union([stage.name for stage in trace.manifest.stages] for trace in traces if trace.manifest)
    for name in names:
        yield _row(name, [_stage_words(trace, name) for trace in traces])


def _stage_words(trace: TraceReply, name: str) -> str | None:
    stages = trace.manifest.stages if trace.manifest else ()
    stage = next((stage for stage in stages if stage.name == name), None)
    if stage is None:
        return None
    if trace.summary is None:
        return count_words(len(stage.passes))
    rows = [trace.summary.rows.get(f"{name}:{item.ordinal}") for item in stage.passes]
    return f"{len(stage.passes)}, {sum(row is not None and row.changed for row in rows)} changed"


def _times(traces: Sequence[TraceReply]) -> Iterator[Row]:
    known = [{time.stage: time.seconds for time in trace.times or ()} for trace in traces]
    for stage in _union(known):
        # Times always vary a little; only what one can see counts as a difference.
        yield _number_row(stage, [times.get(stage) for times in known], time_words, varies=True)


def _arguments(manifests: Sequence[Manifest | None], *, constexpr: bool) -> Iterator[Row]:
    known = [
        {item.name: item for item in manifest.kernel.arguments if (item.type == "constexpr") is constexpr}
        if manifest
        else {}
        for manifest in manifests
    ]
    for name in _union(known):
        yield _row(name, [_argument_words(arguments.get(name)) for arguments in known])


def _argument_words(argument: Argument | None) -> str | None:
    if argument is None:
        return None
    if argument.type == "constexpr":
        return _value_words(argument.value)
    promises = f" ÷{argument.divisibility}" if argument.divisibility else ""
    return argument.type + promises + (f", {argument.pointer_range}-bit offsets" if argument.pointer_range else "")


def _options(manifests: Sequence[Manifest | None]) -> Iterator[Row]:
    known = [manifest.options if manifest else {} for manifest in manifests]
    for name in _union(known):
        yield _row(name, [_value_words(options[name]) if name in options else None for options in known])


def _value_words(value: JsonValue) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _row(label: str, values: Sequence[str | None]) -> Row:
    return Row(label=label, values=tuple(values), differs=len({value for value in values if value is not None}) > 1)


def _number_row(
    label: str,
    numbers: Sequence[float | None],
    words: Callable[[float], str],
    hint: str | None = None,
    *,
    varies: bool = False,
) -> Row:
    known = [number for number in numbers if number is not None]
    apart = max(known) > 1.5 * min(known) if varies else len(set(known)) > 1
    values = tuple(None if number is None else words(number) for number in numbers)
    return Row(label=label, hint=hint, values=values, numbers=tuple(numbers), differs=apart)


def _union(lists: Iterable[Iterable[str]]) -> list[str]:
    """Return every name once, in the order of the first list that has it."""
    return list(dict.fromkeys(name for names in lists for name in names))
