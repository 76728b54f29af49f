"""Where a text's locations stand: ``loc(...)`` in MLIR, and the lines that hold nothing else."""

from __future__ import annotations

import numpy as np

from pipelines.analysis.names import BLANK, DIGIT, NAME, Cuts, before_blanks
from pipelines.analysis.page import Marks, Page
from pipelines.analysis.spans import Flags, Index, matches, run_end


def mlir_locations(page: Page, parens: Marks) -> Cuts:
    """Return every ``loc(...)`` that closes in its line, with the blanks before it.

    ``parens`` are all parentheses outside strings.
    """
    opens = parens.byte == ord("(")
    calls = np.flatnonzero(opens & matches(page.buffer, parens.at - 3, b"loc"))
    before = parens.at[calls] - 4
    calls = calls[(before < 0) | ~NAME[page.buffer[np.maximum(before, 0)]]]
    close = _closing(parens, opens, calls)
    calls, close = calls[close >= 0], close[close >= 0]
    return Cuts(before_blanks(page, parens.at[calls] - 3), parens.at[close] + 1)


def llvm_locations(page: Page, bangs: Marks) -> Cuts:
    """Return every ``, !dbg !0``, with the blanks before it; ``bangs`` are all exclamation marks outside strings."""
    debug = bangs.at[matches(page.buffer, bangs.at, b"!dbg !")]
    start = before_blanks(page, debug)
    start -= matches(page.buffer, start - 1, b",")
    return Cuts(start, run_end(page.buffer, debug + len(b"!dbg !"), DIGIT))


def _closing(parens: Marks, opens: Flags, calls: Index) -> Index:
    """Return for each opening paren the index of its match in the same line, or -1."""
    close = np.full(calls.size, -1)
    if not calls.size:
        return close
    following = np.minimum(calls + 1, opens.size - 1)
    simple = (following > calls) & ~opens[following] & (parens.line[following] == parens.line[calls])
    close[simple] = following[simple]
    nested = np.flatnonzero(~simple)
    if nested.size:
        close[nested] = _closing_nested(parens, opens, calls[nested])
    return close


def _closing_nested(parens: Marks, opens: Flags, calls: Index) -> Index:
    """Match parens by level: sorted by line, level and place, an opening paren stands before its match."""
    among = np.flatnonzero(np.isin(parens.line, np.unique(parens.line[calls])))
    is_open, line = opens[among], parens.line[among]
    depth = np.cumsum(np.where(is_open, 1, -1))
    level = depth + ~is_open
    order = np.lexsort((level, line))
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    at = place[np.searchsorted(among, calls)]
    after = np.minimum(at + 1, order.size - 1)
    mine, other = order[at], order[after]
    matched = (after > at) & ~is_open[other] & (line[other] == line[mine]) & (level[other] == level[mine])
    return np.where(matched, among[other], -1)


def predecessors(page: Page, slashes: Marks) -> Marks:
    """Return the comments that list a block's predecessors: ``// pred: ^bb1``, ``// 2 preds: ...``."""
    at = slashes.at[matches(page.buffer, slashes.at, b"//")]
    word = run_end(page.buffer, run_end(page.buffer, at + 2, BLANK), DIGIT)
    word = run_end(page.buffer, word, BLANK)
    listed = matches(page.buffer, word, b"pred") | matches(page.buffer, word, b"no predecessors")
    return slashes.where(np.isin(slashes.at, at[listed]))


def mlir_location_lines(page: Page) -> Flags:
    """Flag the lines that define a location (``#loc1 = ...``) or debug information (``#di_file = ...``)."""
    location = matches(page.buffer, page.starts, b"#di_")
    aliases = np.flatnonzero(matches(page.buffer, page.starts, b"#loc"))
    after = run_end(page.buffer, page.starts[aliases] + 4, DIGIT)
    after = run_end(page.buffer, after, BLANK)
    location[aliases] = page.buffer[after] == ord("=")
    return location


def llvm_location_lines(page: Page) -> Flags:
    """Flag debug records, ``!0 = !DILocation(...)`` and its kin, and the list of compile units."""
    buffer = page.buffer
    location = matches(buffer, page.first, b"#dbg_") | matches(buffer, page.starts, b"!llvm.dbg.cu ")
    metadata = np.flatnonzero((buffer[page.starts] == ord("!")) & DIGIT[buffer[page.starts + 1]])
    value = run_end(buffer, page.starts[metadata] + 1, DIGIT)
    value += 3 * matches(buffer, value, b" = ")
    value += 9 * matches(buffer, value, b"distinct ")
    location[metadata] = matches(buffer, value, b"!DI")
    return location


def ptx_location_lines(page: Page) -> Flags:
    """Flag ``.loc`` and ``.file``, labels that only debug information uses, and its sections."""
    words = (b".loc\t", b".loc ", b".file\t", b".file ", b"$L__tmp", b"$L__func_begin", b"$L__func_end")
    location = np.zeros(page.first.size, np.bool_)
    for word in words:
        location |= matches(page.buffer, page.first, word)
    return location | _debug_sections(page)


def amdgcn_location_lines(page: Page) -> Flags:
    """Flag ``.loc``, ``.file`` and ``.cfi_...``, labels that only debug information uses, and its sections."""
    words = (b".loc\t", b".loc ", b".file\t", b".file ", b".cfi_", b".Ltmp", b".Lfunc_begin", b".Lfunc_end")
    location = np.zeros(page.first.size, np.bool_)
    for word in words:
        location |= matches(page.buffer, page.first, word)
    opens = _section_starts(page, b"")
    opens |= matches(page.buffer, page.first, b".text")
    following = np.append(np.flatnonzero(opens), page.starts.size)
    debug = np.flatnonzero(_section_starts(page, b".debug_"))
    return location | _between(page, debug, following[np.searchsorted(following, debug, side="right")] - 1)


def _section_starts(page: Page, prefix: bytes) -> Flags:
    """Flag the ``.section`` lines whose section's name begins so."""
    found = matches(page.buffer, page.first, b".section")
    lines = np.flatnonzero(found)
    name = run_end(page.buffer, page.first[lines] + len(b".section"), BLANK)
    found[lines] = matches(page.buffer, name, prefix)
    return found


def _debug_sections(page: Page) -> Flags:
    """Flag from each ``.section .debug_...`` to the brace that closes it."""
    buffer = page.buffer
    sections = np.flatnonzero(_section_starts(page, b".debug_"))
    last = buffer[np.maximum(page.ends - 1, 0)]
    closed = np.flatnonzero((buffer[page.first] == ord("}")) | (last == ord("}")))
    closed = np.append(closed, page.starts.size - 1)
    return _between(page, sections, closed[np.searchsorted(closed, sections)])


def _between(page: Page, sections: Index, until: Index) -> Flags:
    """Flag the lines from each start to its end, both counted in."""
    steps = np.zeros(page.starts.size + 1, np.int64)
    np.add.at(steps, sections, 1)
    np.add.at(steps, until + 1, -1)
    return np.cumsum(steps)[:-1] > 0
