"""What a run found, as rows with gates, and the document that shows them."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

Written by `make bench`, which fails where a gated row misses its limit. Ratios compare two measurements of one run,
interleaved, so that they mean something on any machine; absolute numbers are of the machine named below.
"""


@dataclass(frozen=True)
class Row:
    """One number; ``limit`` is what it must not exceed, or must reach where ``at_least``. No limit, no gate."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False

    @property
    def passes(self) -> bool:
        """Whether the number is within its limit."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def markdown(self) -> str:
        """Return the row of the table."""
        bound = "" if self.limit is None else f"{'at least' if self.at_least else 'at most'} {self.limit:g}{self.unit}"
        verdict = "" if self.limit is None else ("yes" if self.passes else "**no**")
        return f"| {self.name} | {shown(self.value)}{self.unit} | {bound} | {verdict} |"


@dataclass(frozen=True)
class Section:
    """A measurement: what was done, in words, its rows, and a table of the cases behind them."""

    title: str
    method: str
    rows: Sequence[Row]
    columns: Sequence[str] = ()
    cases: Sequence[Sequence[str]] = field(default=())

    def markdown(self) -> str:
        """Return the section of the document."""
        lines = [f"## {self.title}", "", self.method, "", "| number | measured | limit | met |", "|---|--:|--:|---|"]
        lines += [row.markdown() for row in self.rows]
        if self.cases:
            lines += ["", "| " + " | ".join(self.columns) + " |"]
            lines += ["|---|" + "--:|" * (len(self.columns) - 1)]
            lines += ["| " + " | ".join(case) + " |" for case in self.cases]
        return "\n".join(lines) + "\n"


def shown(value: float) -> str:
    """Return a number with three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def machine() -> str:
    """Name what this runs on: processor, cores, kernel and Python."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, Linux {platform.release()}, Python {platform.python_version()}"


def write(sections: Sequence[Section]) -> None:
    """Write the document."""
    parts = [HEAD, f"Machine: {machine()}.\n", *(section.markdown() for section in sections)]
    DOCUMENT.write_text("\n".join(parts))
