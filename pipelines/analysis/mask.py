"""One key a line: equal for lines that differ only in names a compiler renumbers, in locations or in indentation."""

from __future__ import annotations

import numpy as np

from pipelines.analysis.page import NEWLINE
from pipelines.analysis.scan import Scan, scan
from pipelines.analysis.spans import Index, Keys, expand, hash_lines, merge
from pipelines.trace import Syntax

LOCATION = np.uint64(0)

# A hash that happens to be LOCATION becomes this one.
_NOT_LOCATION = np.uint64(1)


def count_lines(text: bytes) -> int:
    """Return how many lines a split at line feeds gives: one more than there are, so one for the empty text.

    This is the only count of lines: keys, diffs and summaries use it. Texts are stored without trailing newlines, so
    a viewer that breaks lines at line feeds alone (CodeMirror's ``lineSeparator``) counts the same.
    """
    return text.count(b"\n") + 1


def line_keys(text: bytes, syntax: Syntax) -> Keys:
    """Return one key a line, the same in every process; a line that is only location has the key ``LOCATION``.

    Masked are SSA names, block labels, numbered aliases and metadata, by the syntax. ``loc(...)``, ``!dbg``, lists of
    predecessors, instruction offsets and, but for "python" and "text", indentation are left out.
    """
    return keys_of_scan(scan(text, syntax))


def keys_of_scan(found: Scan) -> Keys:
    """Return the line keys of a text that is scanned already."""
    names, cuts, page = found.names, found.cuts, found.page
    kept = np.ones(page.size + 1, np.bool_)
    kept[_clipped(names.masked, names.end, page.size)] = False
    kept[_clipped(cuts.start, cuts.end, page.size)] = False
    rest = page.buffer[: page.size + 1][kept]
    keys = hash_lines(rest, np.flatnonzero(rest == NEWLINE) + 1)
    keys[keys == LOCATION] = _NOT_LOCATION
    keys[found.location] = LOCATION
    return keys


def _clipped(start: Index, end: Index, size: int) -> Index:
    """Return all indices in the spans, each once, none past the text."""
    start, end = merge(start, np.minimum(end, size))
    return expand(start, end - start)
