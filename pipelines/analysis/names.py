"""Names and cuts: the parts of a line that a compiler renumbers, and those that say nothing about the program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.analysis.page import Marks, Page
from pipelines.analysis.spans import Flags, Index, run_end, run_start, table

DIGITS = b"0123456789"
LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGIT = table(DIGITS)
WORD = table(LETTERS + DIGITS + b"_")
NAME = table(LETTERS + DIGITS + b"_.$-")
BLANK = table(b" \t")

# A longer run keeps its head in the key, which only makes two such lines compare as different.
_DIGITS_OF_NAME = 20
_BLANKS_BEFORE_CUT = 64

VALUE, LABEL, ALIAS, METADATA = range(4)


@dataclass(frozen=True)
class Names:
    """Spans in text order: a name is [start, end), of which [masked, end) may be renumbered."""

    start: Index
    masked: Index
    end: Index
    line: Index
    kind: Index

    def where(self, kept: Flags) -> Names:
        """Return a selection."""
        return Names(self.start[kept], self.masked[kept], self.end[kept], self.line[kept], self.kind[kept])


@dataclass(frozen=True)
class Cuts:
    """Spans [start, end) that the key of a line leaves out."""

    start: Index
    end: Index


def find(page: Page, marks: Marks, kind: int, members: Flags, *, digits: bool = False) -> Names:
    """Return the names that follow the marks; with ``digits`` only their trailing digits may be renumbered."""
    start = marks.at + 1
    end = run_end(page.buffer, start, members)
    masked = run_start(page.buffer, end, DIGIT, _DIGITS_OF_NAME) if digits else start
    masked = np.maximum(masked, start)
    return Names(start, masked, end, marks.line, np.full(start.size, kind)).where(end > start)


def join_names(*parts: Names) -> Names:
    """Return all names in text order."""
    start = np.concatenate([part.start for part in parts])
    order = np.argsort(start, kind="stable")
    fields = (
        np.concatenate([getattr(part, field) for part in parts])[order]
        for field in ("start", "masked", "end", "line", "kind")
    )
    return Names(*fields)


def join_cuts(*parts: Cuts) -> Cuts:
    """Return all cuts, in no order."""
    return Cuts(np.concatenate([p.start for p in parts]), np.concatenate([p.end for p in parts]))


def cut_to_line_end(page: Page, marks: Marks) -> Cuts:
    """Cut from the marks, and the blanks before them, to the ends of their lines."""
    return Cuts(before_blanks(page, marks.at), page.ends[marks.line])


def before_blanks(page: Page, at: Index) -> Index:
    """Return where the blanks before each position start."""
    return run_start(page.buffer, at, BLANK, _BLANKS_BEFORE_CUT)
