"""One rule set a syntax: its names, its cuts, and which of its lines are only location."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipelines.analysis.locations import (
    amdgcn_location_lines,
    llvm_location_lines,
    llvm_locations,
    mlir_location_lines,
    mlir_locations,
    predecessors,
    ptx_location_lines,
)
from pipelines.analysis.names import (
    ALIAS,
    DIGIT,
    LABEL,
    METADATA,
    NAME,
    VALUE,
    WORD,
    Cuts,
    Names,
    cut_to_line_end,
    find,
    join_cuts,
    join_names,
)
from pipelines.analysis.page import Page
from pipelines.analysis.spans import Flags, matches, run_end, table

_HEX = table(b"0123456789abcdefABCDEF")


class Found(NamedTuple):
    """What a rule set finds; ``location`` is one flag a line."""

    names: Names
    cuts: Cuts
    location: Flags


def mlir(page: Page) -> Found:
    """MLIR: ``%value``, ``^label``, ``#alias1``; ``loc(...)``, ``// preds``; lines that define locations."""
    buffer = page.buffer
    marks = page.marks(b"%#^()/", strings=True)
    hashes = marks.only(b"#")
    # After a name the sharp sign selects one of several results; before a dot it starts a dialect's attribute.
    hashes = hashes.where((hashes.at == 0) | ~NAME[buffer[hashes.at - 1]])
    aliases = find(page, hashes, ALIAS, WORD, digits=True)
    names = join_names(
        find(page, marks.only(b"%"), VALUE, NAME),
        find(page, marks.only(b"^"), LABEL, NAME),
        aliases.where(buffer[aliases.end] != ord(".")),
    )
    lists = cut_to_line_end(page, predecessors(page, marks.only(b"/")))
    return Found(names, join_cuts(mlir_locations(page, marks.only(b"()")), lists), mlir_location_lines(page))


def llvm(page: Page) -> Found:
    """LLVM IR: ``%value``, labels, ``#0``, ``!0``; ``!dbg !0``, ``; preds``; debug records and metadata."""
    buffer = page.buffer
    marks = page.marks(b"%#!;", strings=True)
    bangs = marks.only(b"!")
    comments = marks.only(b";")
    names = join_names(
        find(page, marks.only(b"%"), VALUE, NAME),
        find(page, marks.only(b"#"), ALIAS, DIGIT),
        find(page, bangs, METADATA, DIGIT),
        _llvm_labels(page),
    )
    cuts = join_cuts(
        llvm_locations(page, bangs),
        cut_to_line_end(page, comments.where(matches(buffer, comments.at, b"; preds ="))),
    )
    return Found(names, cuts, llvm_location_lines(page))


def _llvm_labels(page: Page) -> Names:
    """Return the labels that open blocks; they are values, since branches name them ``%26``."""
    lines = np.flatnonzero(NAME[page.buffer[page.starts]])
    start = page.starts[lines]
    end = run_end(page.buffer, start, NAME)
    return Names(start, start, end, lines, np.full(lines.size, VALUE)).where(page.buffer[end] == ord(":"))


def ptx(page: Page) -> Found:
    """PTX: registers, which keep their class; labels; the lines of debug information."""
    marks = page.marks(b"%$", strings=False)
    registers = find(page, marks.only(b"%"), VALUE, WORD, digits=True)
    names = join_names(
        registers.where(registers.masked < registers.end),
        find(page, marks.only(b"$"), LABEL, WORD),
    )
    return Found(names, Cuts(page.starts[:0], page.starts[:0]), ptx_location_lines(page))


def sass(page: Page) -> Found:
    """SASS: labels; the offset of an instruction; ``//## File`` lines. Registers are allocated, so they stay."""
    buffer = page.buffer
    marks = page.marks(b".", strings=False)
    start = page.first[matches(buffer, page.first, b"/*")]
    end = run_end(buffer, start + 2, _HEX)
    offset = (end > start + 2) & matches(buffer, end, b"*/")
    return Found(
        find(page, marks.where(matches(buffer, marks.at, b".L_")), LABEL, WORD),
        Cuts(start[offset], end[offset] + 2),
        matches(buffer, page.first, b"//## File"),
    )


def amdgcn(page: Page) -> Found:
    """AMDGCN: labels of blocks and those of debug information; its lines. Registers are allocated, so they stay."""
    buffer = page.buffer
    marks = page.marks(b".B%", strings=False)
    local = marks.only(b".")
    local = local.where(matches(buffer, local.at, b".LBB") | matches(buffer, local.at, b".Ltmp"))
    # Comments name blocks without the dot: "%bb.3:", "Header=BB0_3".
    told = marks.only(b"B")
    told = told.where(matches(buffer, told.at, b"BB") & DIGIT[buffer[told.at + 2]] & ~NAME[buffer[told.at - 1]])
    entered = marks.only(b"%")
    names = join_names(
        find(page, local, LABEL, WORD),
        find(page, told, LABEL, WORD),
        find(page, entered.where(matches(buffer, entered.at, b"%bb.")), LABEL, NAME),
    )
    return Found(names, Cuts(page.starts[:0], page.starts[:0]), amdgcn_location_lines(page))
