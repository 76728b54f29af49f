"""Align two texts line by line as a reader of IR would: names, locations and indentation do not count."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import pygit2
from pygit2.enums import DiffOption

from pipelines.analysis.mask import LOCATION
from pipelines.analysis.page import Page
from pipelines.analysis.rename import CHANGED, IDENTICAL, RENAMED, Side, classify
from pipelines.analysis.scan import scan
from pipelines.analysis.spans import Index, Keys
from pipelines.trace import Syntax

ONLY_LOCATION = 3

# Past this many lines, after the ends that agree are taken off, a diff could take over a second.
MAX_LINES = 400_000

_SYMBOLS = 64
_DIGITS_OF_ID = 4


class Lines(NamedTuple):
    """A text with its ``mask.line_keys``, which a caller may have kept."""

    text: bytes
    syntax: Syntax
    keys: Keys


class Op(NamedTuple):
    """Lines [i1, i2) of the first text against [j1, j2) of the second, from 0.

    ``kind``: 0 the same apart from locations, 1 only renamed or indented otherwise (both pair line by line), 2 removed
    and added, 3 lines that are only location and differ. Removed and added lines can read the same, where an operand
    or a layout of that name is another one.
    """

    kind: int
    i1: int
    i2: int
    j1: int
    j2: int


class Diff(NamedTuple):
    """Ops that cover both texts in order; counts of lines, where lines that are only location never count.

    ``fallback`` says that the texts are too long: only their common head and tail are aligned.
    """

    ops: list[Op]
    plus: int
    minus: int
    renamed: int
    fallback: bool


def align(a: Lines, b: Lines) -> Diff:
    """Align two texts of one syntax.

    Raises:
        ValueError: keys that are not the text's.
    """
    if a.text == b.text:
        return Diff([Op(IDENTICAL, 0, a.keys.size, 0, b.keys.size)], 0, 0, 0, fallback=False)
    scan_a, scan_b = scan(a.text, a.syntax), scan(b.text, b.syntax)
    if scan_a.page.starts.size != a.keys.size or scan_b.page.starts.size != b.keys.size:
        raise ValueError("the line keys belong to another text")
    code_a, code_b = np.flatnonzero(a.keys != LOCATION), np.flatnonzero(b.keys != LOCATION)
    pairs_a, pairs_b, fallback = _pair(a.keys[code_a], b.keys[code_b])
    pairs_a, pairs_b = code_a[pairs_a], code_b[pairs_b]
    kinds = classify(Side(scan_a, a.keys, pairs_a), Side(scan_b, b.keys, pairs_b), a.syntax)
    sides = (_side(a, scan_a.page), _side(b, scan_b.page))
    changed = int(np.count_nonzero(kinds == CHANGED))
    return Diff(
        _joined(_ops(*sides, pairs_a, pairs_b, kinds)),
        plus=code_b.size - pairs_b.size + changed,
        minus=code_a.size - pairs_a.size + changed,
        renamed=int(np.count_nonzero(kinds == RENAMED)),
        fallback=fallback,
    )


def _pair(a: Keys, b: Keys) -> tuple[Index, Index, bool]:
    """Return the indices of lines with equal keys that a shortest edit script keeps, and whether it was given up."""
    shorter = min(a.size, b.size)
    differs = np.flatnonzero(a[:shorter] != b[:shorter])
    head = int(differs[0]) if differs.size else shorter
    rest_a, rest_b = a[head:], b[head:]
    shorter -= head
    differs = np.flatnonzero(rest_a[::-1][:shorter] != rest_b[::-1][:shorter])
    tail = int(differs[0]) if differs.size else shorter
    rest_a, rest_b = rest_a[: rest_a.size - tail], rest_b[: rest_b.size - tail]
    fallback = rest_a.size + rest_b.size > MAX_LINES
    kept_a, kept_b = np.ones(a.size, np.bool_), np.ones(b.size, np.bool_)
    hunks = [(0, rest_a.size, 0, rest_b.size)] if fallback else _hunks(rest_a, rest_b)
    for i1, i2, j1, j2 in hunks:
        kept_a[head + i1 : head + i2] = False
        kept_b[head + j1 : head + j2] = False
    return np.flatnonzero(kept_a), np.flatnonzero(kept_b), fallback


def _hunks(a: Keys, b: Keys) -> Iterator[tuple[int, int, int, int]]:
    """Diff with libgit2, which takes texts: one short line for each key."""
    if not a.size or not b.size:
        yield 0, a.size, 0, b.size
        return
    ids = np.unique(np.concatenate((a, b)), return_inverse=True)[1]
    texts = _encode(ids[: a.size]), _encode(ids[a.size :])
    patch = pygit2.Patch.create_from(*texts, flag=DiffOption.FORCE_TEXT, context_lines=0, interhunk_lines=0)
    for hunk in patch.hunks:
        # An empty side names the line before it, counted from 1, which is the line after it, counted from 0.
        i1 = hunk.old_start - (hunk.old_lines > 0)
        j1 = hunk.new_start - (hunk.new_lines > 0)
        yield i1, i1 + hunk.old_lines, j1, j1 + hunk.new_lines


def _encode(ids: Index) -> bytes:
    """Write each id as four printable characters and a newline."""
    out = np.full((ids.size, _DIGITS_OF_ID + 1), ord("\n"), np.uint8)
    for place in range(_DIGITS_OF_ID):
        out[:, place] = ord("0") + ids // _SYMBOLS**place % _SYMBOLS
    return out.tobytes()


class _Side(NamedTuple):
    """A text, its lines, and one byte a line: 1 for those that are only location."""

    text: bytes
    page: Page
    location: bytes

    def slice(self, first: int, last: int) -> bytes:
        """Return the text of lines [first, last), which are not empty."""
        return self.text[int(self.page.starts[first]) : int(self.page.ends[last - 1])]

    def pieces(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Split lines [first, last) into runs: code from, code to and location to."""
        while first < last:
            location = self.location.find(1, first, last)
            location = last if location < 0 else location
            code = self.location.find(0, location, last)
            code = last if code < 0 else code
            yield first, location, code
            first = code


def _side(lines: Lines, page: Page) -> _Side:
    return _Side(lines.text, page, (lines.keys == LOCATION).tobytes())


def _ops(a: _Side, b: _Side, pairs_a: Index, pairs_b: Index, kinds: Index) -> Iterator[Op]:
    """Walk the runs of pairs of one kind, and what stands between them."""
    turns = (np.diff(pairs_a) != 1) | (np.diff(pairs_b) != 1) | (np.diff(kinds) != 0)
    first = np.concatenate((np.zeros(min(1, kinds.size), np.int64), np.flatnonzero(turns) + 1))
    size = np.diff(np.append(first, kinds.size))
    i = j = 0
    for i1, j1, kind, length in zip(
        pairs_a[first].tolist(), pairs_b[first].tolist(), kinds[first].tolist(), size.tolist(), strict=True
    ):
        yield from _between(a, b, (i, i1), (j, j1))
        i, j = i1 + length, j1 + length
        yield Op(kind, i1, i, j1, j)
    yield from _between(a, b, (i, len(a.location)), (j, len(b.location)))


def _between(a: _Side, b: _Side, lines_a: tuple[int, int], lines_b: tuple[int, int]) -> Iterator[Op]:
    """Tell removed and added lines from those that are only location."""
    (i, i_end), (j, j_end) = lines_a, lines_b
    for piece_a, piece_b in zip_longest(a.pieces(i, i_end), b.pieces(j, j_end)):
        i1, i2, i3 = piece_a or (i_end, i_end, i_end)
        j1, j2, j3 = piece_b or (j_end, j_end, j_end)
        if i2 > i1 or j2 > j1:
            yield Op(CHANGED, i1, i2, j1, j2)
        if i3 > i2 or j3 > j2:
            same = i3 > i2 and j3 > j2 and a.slice(i2, i3) == b.slice(j2, j3)
            yield Op(IDENTICAL if same else ONLY_LOCATION, i2, i3, j2, j3)


def _joined(ops: Iterator[Op]) -> list[Op]:
    """Join neighbours of one kind; removed and added lines stay apart, so that the rows of pairs stay side by side."""
    out: list[Op] = []
    for op in ops:
        if out and out[-1].kind == op.kind != CHANGED:
            out[-1] = Op(op.kind, out[-1].i1, op.i2, out[-1].j1, op.j2)
        else:
            out.append(op)
    return out
