"""The reports that MLIR prints with pass timing on, one for each run of a pass manager.

A report lists passes in the order in which they began. A pipeline stands in it as a block of its own, whether it is
nested on operations or was run by the pass before it, whose time then includes it::

    ----Wall Time----  ----Name----
      0.0015 ( 40.4%)  InlinerPass
      0.0000 (  1.1%)    (A) CallGraph
      0.0009 ( 23.4%)  'tt.func' Pipeline
      0.0009 ( 23.2%)    CanonicalizerPass
     -0.0002 ( -4.2%)  Rest
      0.0038 (100.0%)  Total
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_REPORTS = 1_000
MAX_LINES = 100_000

_HEAD = "Execution time report"
_ROW = re.compile(r" *(-?\d{1,9}\.\d{1,9}) \( *-?\d{1,9}\.\d%\)  ( *)(\S.{0,500})")
_PIPELINE = re.compile(r"'(.+)' Pipeline")


@dataclass(frozen=True)
class Timed:
    """A pass with its seconds of wall time, or a pipeline by its ``anchor``, with the passes in it."""

    name: str
    seconds: float
    anchor: str = ""
    passes: list[Timed] = field(default_factory=list)


def parse_reports(text: str) -> list[list[Timed]]:
    """Return each report's passes and pipelines in order; analyses and totals are left out."""
    reports: list[list[Timed]] = []
    block: tuple[int, Timed] | None = None
    for line in text.split("\n", MAX_LINES)[:MAX_LINES]:
        if _HEAD in line:
            if len(reports) == MAX_REPORTS:
                break
            reports.append([])
            block = None
            continue
        row = _ROW.fullmatch(line)
        if row is None or not reports or row[3] in ("Rest", "Total") or row[3].startswith("(A) "):
            continue
        indent = len(row[2])
        pipeline = _PIPELINE.fullmatch(row[3])
        item = Timed(row[3], float(row[1]), pipeline[1] if pipeline else "")
        if block and indent > block[0]:
            if not pipeline:
                block[1].passes.append(item)
            continue
        block = (indent, item) if pipeline else None
        reports[-1].append(item)
    return reports
