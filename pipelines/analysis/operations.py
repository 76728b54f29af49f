"""Count a text's operations by dialect, without parsing it."""

from __future__ import annotations

import numpy as np

from pipelines.analysis.page import Page
from pipelines.analysis.spans import Index, hash_spans, matches, run_end, table

# A dump may be hostile: names past these bounds are not listed.
MAX_DIALECTS = 24
_MAX_NAME = 32

_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_DIALECT = table(_LOWER + b"0123456789_")
_LETTER = table(_LOWER)


def count_dialects(text: bytes) -> dict[str, int]:
    """Return the number of operations of each dialect in an MLIR text, the most used first.

    One operation a line is counted, as MLIR prints them: ``%0 = arith.addi ...``, ``tt.store ...``,
    ``%1 = "tt.reduce"(...)``. Operations printed without their dialect (``module``) are not.
    """
    page = Page.of(text)
    start = _operations(page)
    end = run_end(page.buffer, start, _DIALECT)
    named = (page.buffer[end] == ord(".")) & (end - start <= _MAX_NAME) & _LETTER[page.buffer[start]]
    start, end = start[named], end[named]
    if not start.size:
        return {}
    _, first, count = np.unique(hash_spans(page.buffer, start, end), return_index=True, return_counts=True)
    most = np.argsort(-count, kind="stable")[:MAX_DIALECTS]
    names = [page.buffer[start[n] : end[n]].tobytes().decode("ascii") for n in first[most].tolist()]
    return dict(sorted(zip(names, count[most].tolist(), strict=True), key=lambda item: (-item[1], item[0])))


def _operations(page: Page) -> Index:
    """Return where each line's operation would stand: after its results, past an opening quote."""
    start = page.first.copy()
    results = np.flatnonzero(page.buffer[start] == ord("%"))
    equals = np.flatnonzero(page.buffer == ord("="))
    equals = equals[matches(page.buffer, equals - 1, b" = ")]
    equals = np.append(equals, page.size)
    at = equals[np.searchsorted(equals, start[results])]
    here = at < page.ends[results]
    start[results[here]] = at[here] + 2
    start += page.buffer[start] == ord('"')
    return start
