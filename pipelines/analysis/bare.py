"""A text as it reads while locations are hidden."""

from __future__ import annotations

import numpy as np

from pipelines.analysis.locations import llvm_locations, mlir_locations
from pipelines.analysis.names import Cuts
from pipelines.analysis.page import Page
from pipelines.analysis.scan import scan
from pipelines.analysis.spans import expand, merge
from pipelines.trace import Syntax


def bare_lines(text: bytes, syntax: Syntax) -> list[bytes | None]:
    """Return the text's lines without their locations; None for a line that is only location."""
    page = Page.of(text)
    cuts = _cuts(page, syntax)
    start, end = merge(cuts.start, np.minimum(cuts.end, page.size))
    kept = np.ones(page.size, np.bool_)
    kept[expand(start, end - start)] = False
    lines = page.buffer[: page.size][kept].tobytes().split(b"\n")
    location = scan(text, syntax).location.tolist()
    return [None if hidden else line for line, hidden in zip(lines, location, strict=True)]


def _cuts(page: Page, syntax: Syntax) -> Cuts:
    if syntax == "mlir":
        return mlir_locations(page, page.marks(b"()", strings=True))
    if syntax == "llvm":
        return llvm_locations(page, page.marks(b"!", strings=True))
    return Cuts(page.starts[:0], page.starts[:0])
