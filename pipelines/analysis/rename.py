"""Tell apart aligned lines: the same, only renamed, or with other operands.

Lines are aligned by their masked text, so an aligned pair can only differ in names and indentation. Names map from
one text to the other where they are defined: by the pair of lines that define them, or, where the definition has no
partner, by their first use. A pair that breaks the mapping names another operand.
"""

from __future__ import annotations

import numpy as np

from pipelines.analysis.names import LABEL, VALUE, Names
from pipelines.analysis.page import Page
from pipelines.analysis.scan import Scan
from pipelines.analysis.spans import Flags, Index, Keys, expand, hash_spans, matches, mix, run_end, run_start, table
from pipelines.trace import Syntax

IDENTICAL, RENAMED, CHANGED = 0, 1, 2

_FIRST_WORD = table(b"abcdefghijklmnopqrstuvwxyz._")


def classify(a: Scan, b: Scan, lines_a: Index, lines_b: Index, syntax: Syntax) -> Index:
    """Return IDENTICAL, RENAMED or CHANGED for each pair of aligned lines, apart from locations.

    ``lines_a`` and ``lines_b`` ascend. A pair whose lines hold unequal numbers of names is CHANGED.
    """
    kinds = np.full(lines_a.size, IDENTICAL, np.int64)
    kinds[_indent(a.page, lines_a) != _indent(b.page, lines_b)] = RENAMED
    first_a, count_a = _names_of(a, lines_a)
    first_b, count_b = _names_of(b, lines_b)
    odd = count_a != count_b
    count = np.where(odd, 0, count_a)
    at_a, at_b = expand(first_a, count), expand(first_b, count)
    pair = np.repeat(np.arange(lines_a.size), count)
    name_a, name_b = _identity(a)[at_a], _identity(b)[at_b]
    kinds[pair[name_a != name_b]] = RENAMED
    scope = _scopes(a.page, syntax)[lines_a[pair]] if pair.size else pair
    defines = _definitions(a, syntax)[at_a]
    expected = _mapped(mix(name_a + scope.astype(np.uint64)), name_b, defines)
    kinds[pair[expected != name_b]] = CHANGED
    kinds[odd] = CHANGED
    return kinds


def _indent(page: Page, lines: Index) -> Index:
    return (page.first - page.starts)[lines]


def _names_of(found: Scan, lines: Index) -> tuple[Index, Index]:
    """Return for each line the index of its first name and how many it has."""
    first = np.searchsorted(found.names.line, lines)
    return first, np.searchsorted(found.names.line, lines, side="right") - first


def _identity(found: Scan) -> Keys:
    """Return a hash of each name and its kind."""
    names = found.names
    return mix(hash_spans(found.page.buffer, names.start, names.end) + names.kind.astype(np.uint64))


def _mapped(name: Keys, other: Keys, defines: Flags) -> Keys:
    """Return for each use the partner of its name: at the last definition before it, else the next one, else at the
    name's first use."""
    if not name.size:
        return other
    order = np.argsort(name, kind="stable")
    name, defines = name[order], defines[order]
    place = np.arange(name.size)
    starts = np.concatenate((np.ones(1, np.bool_), name[1:] != name[:-1]))
    group = np.maximum.accumulate(np.where(starts, place, 0))
    before = np.maximum.accumulate(np.where(defines, place, -1))
    after = np.minimum.accumulate(np.where(defines, place, name.size)[::-1])[::-1]
    has_after = (after < name.size) & (name[np.minimum(after, name.size - 1)] == name)
    source = np.where(before >= group, before, np.where(has_after, after, group))
    out = np.empty_like(other)
    out[order] = other[order][source]
    return out


def _definitions(found: Scan, syntax: Syntax) -> Flags:
    """Say which names define: those before ``=`` or ``:``, the label that opens a block, a function's parameters."""
    names, buffer = found.names, found.page.buffer
    if not names.start.size:
        return np.zeros(0, np.bool_)
    leads = np.concatenate((np.ones(1, np.bool_), names.line[1:] != names.line[:-1]))
    if syntax == "ptx":
        opened = buffer[np.maximum(names.start - 2, 0)]
        return leads & (opened != ord("[")) & (opened != ord("@"))
    after = buffer[names.end]
    assigned = (after == ord(" ")) & (buffer[names.end + 1] == ord("=")) & (buffer[names.end + 2] != ord("="))
    defines = assigned | ((after == ord(":")) & ((names.kind == VALUE) | (names.kind == LABEL)))
    defines |= (names.kind == LABEL) & (names.start - 1 == found.page.first[names.line])
    return defines | _results(found, leads, assigned) | (_opens_function(found.page, syntax)[names.line])


def _results(found: Scan, leads: Flags, assigned: Flags) -> Flags:
    """Say which names stand before the first ``=`` of a line that starts with a value: ``%a, %b = op``."""
    names = found.names
    place = np.arange(names.start.size)
    lead = np.maximum.accumulate(np.where(leads, place, 0))
    next_assigned = np.minimum.accumulate(np.where(assigned, place, place.size)[::-1])[::-1]
    same_line = (next_assigned < place.size) & (names.line[np.minimum(next_assigned, place.size - 1)] == names.line)
    opens = names.start[lead] - 1 == found.page.first[names.line]
    earlier = np.concatenate((np.zeros(1, np.int64), np.cumsum(assigned)[:-1]))
    return same_line & opens & (earlier == earlier[lead]) & (names.kind == VALUE)


def _scopes(page: Page, syntax: Syntax) -> Index:
    """Return for each line the number of functions that opened up to it; names start anew in each."""
    return np.cumsum(_opens_function(page, syntax))


def _opens_function(page: Page, syntax: Syntax) -> Flags:
    """Flag the lines that open a function: ``tt.func``, ``llvm.func``, ``define``."""
    out = np.zeros(page.starts.size, np.bool_)
    if syntax == "llvm":
        return matches(page.buffer, page.starts, b"define ")
    if syntax != "mlir":
        return out
    lines = np.flatnonzero(_FIRST_WORD[page.buffer[page.first]])
    end = run_end(page.buffer, page.first[lines], _FIRST_WORD)
    out[lines] = matches(page.buffer, end - 4, b"func") & (page.buffer[end] == ord(" "))
    return out
