"""Numbered aliases (``#blocked1``, LLVM's ``#0``) stand for what their definition says, wherever that moves."""

from __future__ import annotations

import numpy as np

from pipelines.analysis.names import ALIAS
from pipelines.analysis.scan import Scan
from pipelines.analysis.spans import Flags, Index, Keys, mix

# An alias may be defined by others; deeper chains than this compare by their heads.
_DEPTH = 3


def resolve(found: Scan, keys: Keys, names: Keys, assigned: Flags) -> Keys:
    """Return the names' hashes, where those of aliases are replaced by hashes of their definitions.

    ``keys`` are the text's line keys, ``names`` one hash a name, ``assigned`` says which stand before ``=``. An alias
    without a definition keeps the hash of its name.
    """
    uses = np.flatnonzero(found.names.kind == ALIAS)
    defined = uses[assigned[uses]]
    out = names.copy()
    if not defined.size:
        return out
    known, first = np.unique(names[defined], return_index=True)
    lines = found.names.line[defined[first]]
    place = np.minimum(np.searchsorted(known, names[uses]), known.size - 1)
    has_definition = known[place] == names[uses]
    uses, place = uses[has_definition], place[has_definition]
    inner = _inner(found, uses, lines, assigned)
    content = keys[lines]
    for _ in range(_DEPTH):
        nested = np.zeros(found.page.starts.size, np.uint64)
        weight = mix(content[place[inner]] + uses[inner].astype(np.uint64) - _first_of_line(found, uses[inner]))
        np.add.at(nested, found.names.line[uses[inner]], weight)
        content = mix(keys[lines] + nested[lines])
    out[uses] = content[place]
    return out


def _inner(found: Scan, uses: Index, lines: Index, assigned: Flags) -> Index:
    """Return which uses stand in the definition of an alias."""
    defines = np.zeros(found.page.starts.size, np.bool_)
    defines[lines] = True
    return np.flatnonzero(defines[found.names.line[uses]] & ~assigned[uses])


def _first_of_line(found: Scan, names: Index) -> Keys:
    """Return the index of the first name of each name's line, so that a place within the line can be told."""
    return np.searchsorted(found.names.line, found.names.line[names]).astype(np.uint64)
