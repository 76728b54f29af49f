"""Read a text once: its lines, its names, what is cut from it, and which lines are only location."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.analysis import rules
from pipelines.analysis.names import Cuts, Names
from pipelines.analysis.page import Page
from pipelines.analysis.spans import Flags, inside, merge
from pipelines.trace import Syntax

_RULES = {"mlir": rules.mlir, "llvm": rules.llvm, "ptx": rules.ptx, "sass": rules.sass, "amdgcn": rules.amdgcn}


@dataclass(frozen=True)
class Scan:
    """The cuts are sorted and apart, and hold no name; ``location`` is one flag a line."""

    page: Page
    names: Names
    cuts: Cuts
    location: Flags


def scan(text: bytes, syntax: Syntax) -> Scan:
    """Scan a text; "python" and "text" have neither names nor locations, and their indentation counts."""
    page = Page.of(text)
    rule = _RULES.get(syntax)
    if rule is None:
        nothing = page.starts[:0]
        none = Names(nothing, nothing, nothing, nothing, nothing)
        return Scan(page, none, Cuts(nothing, nothing), np.zeros(page.starts.size, np.bool_))
    names, cuts, location = rule(page)
    start, end = merge(np.concatenate((page.starts, cuts.start)), np.concatenate((page.first, cuts.end)))
    kept = ~inside(names.start, start, end) & ~location[names.line]
    return Scan(page, names.where(kept), Cuts(start, end), location)
