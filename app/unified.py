"""An alignment as ``diff -u`` writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from pipelines.analysis.diff import ONLY_LOCATION, Diff, Op
from pipelines.analysis.rename import CHANGED, RENAMED

CONTEXT = 3
# A row that no hunk crosses.
BREAK = "!"
ALIKE = "\\ reads like a removed line: it moved, or a name in it means something else"


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
