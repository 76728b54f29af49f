"""Tell apart aligned lines: the same, only renamed, or with other operands.

Lines are aligned by their masked text, so an aligned pair can only differ in names and indentation. Names map from
one text to the other where they are defined: by the pair of lines that define them, or, where the definition has no
partner, by their first use. An alias is the same where its definition is. A pair that breaks this has other operands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.analysis.aliases import resolve
from pipelines.analysis.names import ALIAS, LABEL, VALUE
from pipelines.analysis.page import Page
from pipelines.analysis.scan import Scan
from pipelines.analysis.spans import Flags, Index, Keys, expand, hash_spans, matches, mix, run_end, table
from pipelines.trace import Syntax

IDENTICAL, RENAMED, CHANGED = 0, 1, 2

_FIRST_WORD = table(b"abcdefghijklmnopqrstuvwxyz._")


@dataclass(frozen=True)
class Side:
    """One of the two texts: its scan, its line keys, and the lines of it that are aligned, ascending."""

    scan: Scan
    keys: Keys
    lines: Index


def classify(a: Side, b: Side, syntax: Syntax) -> Index:
    """Return IDENTICAL, RENAMED or CHANGED for each pair of aligned lines, apart from locations.

    A pair whose lines hold unequal numbers of names, which only a clash of keys can align, is CHANGED.
    """
    kinds = np.full(a.lines.size, IDENTICAL, np.int64)
    kinds[_indent(a) != _indent(b)] = RENAMED
    (first_a, count_a), (first_b, count_b) = _names_of(a), _names_of(b)
    odd = count_a != count_b
    count = np.where(odd, 0, count_a)
    at_a, at_b = expand(first_a, count), expand(first_b, count)
    pair = np.repeat(np.arange(a.lines.size), count)
    name_a, name_b = _hash_names(a.scan), _hash_names(b.scan)
    kinds[pair[name_a[at_a] != name_b[at_b]]] = RENAMED
    meant_a = resolve(a.scan, a.keys, name_a, _assigned(a.scan))[at_a]
    meant_b = resolve(b.scan, b.keys, name_b, _assigned(b.scan))[at_b]
    mapped = _mapped(mix(meant_a + _scopes(a.scan, syntax)[at_a]), meant_b, _definitions(a.scan, syntax)[at_a])
    expected = np.where(a.scan.names.kind[at_a] == ALIAS, meant_a, mapped)
    kinds[pair[expected != meant_b]] = CHANGED
    kinds[odd] = CHANGED
    return kinds


def _indent(side: Side) -> Index:
    page = side.scan.page
    return (page.first - page.starts)[side.lines]


def _names_of(side: Side) -> tuple[Index, Index]:
    """Return for each line the index of its first name and how many it has."""
    first = np.searchsorted(side.scan.names.line, side.lines)
    return first, np.searchsorted(side.scan.names.line, side.lines, side="right") - first


def _hash_names(found: Scan) -> Keys:
    """Return a hash of each name and its kind."""
    names = found.names
    return mix(hash_spans(found.page.buffer, names.start, names.end) + names.kind.astype(np.uint64))


def _assigned(found: Scan) -> Flags:
    """Say which names stand before an equals sign."""
    end, buffer = found.names.end, found.page.buffer
    before: Flags = (buffer[end] == ord(" ")) & (buffer[end + 1] == ord("=")) & (buffer[end + 2] != ord("="))
    return before


def _mapped(name: Keys, other: Keys, defines: Flags) -> Keys:
    """Return the partner of each use's name: at the last definition before it, else the next, else at its first use."""
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
    leads: Flags = np.concatenate((np.ones(1, np.bool_), names.line[1:] != names.line[:-1]))
    if syntax == "ptx":
        opened = buffer[np.maximum(names.start - 2, 0)]
        leads &= (opened != ord("[")) & (opened != ord("@"))
        return leads
    assigned = _assigned(found)
    defines: Flags = assigned | ((buffer[names.end] == ord(":")) & ((names.kind == VALUE) | (names.kind == LABEL)))
    defines |= (names.kind == LABEL) & (names.start - 1 == found.page.first[names.line])
    defines |= _results(found, leads, assigned)
    if syntax == "llvm":
        defines |= (names.kind == VALUE) & _opens_function(found.page, syntax)[names.line]
    return defines


def _results(found: Scan, leads: Flags, assigned: Flags) -> Flags:
    """Say which names stand before the first ``=`` of a line that starts with a value: ``%a, %b = op``."""
    names = found.names
    place = np.arange(names.start.size)
    lead = np.maximum.accumulate(np.where(leads, place, 0))
    next_assigned = np.minimum.accumulate(np.where(assigned, place, place.size)[::-1])[::-1]
    same_line = (next_assigned < place.size) & (names.line[np.minimum(next_assigned, place.size - 1)] == names.line)
    opens = names.start[lead] - 1 == found.page.first[names.line]
    earlier = np.concatenate((np.zeros(1, np.int64), np.cumsum(assigned)[:-1]))
    results: Flags = same_line & opens & (earlier == earlier[lead]) & (names.kind == VALUE)
    return results


def _scopes(found: Scan, syntax: Syntax) -> Keys:
    """Return for each name the number of functions opened before it, in each of which values and labels start anew."""
    functions = np.cumsum(_opens_function(found.page, syntax))[found.names.line]
    local = (found.names.kind == VALUE) | (found.names.kind == LABEL)
    return np.where(local, functions, 0).astype(np.uint64)


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
