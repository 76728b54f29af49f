"""Measure, write docs/benchmarks.md, and fail where a gate is missed."""

from __future__ import annotations

import signal
import sys

from bench import capture, gallery, load, pages
from bench.report import Section, write
from bench.server import serve
from bench.yardstick import EXAMPLES, yardstick


def main() -> int:
    """Run all measurements; return the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is stopped too
    sections: list[Section] = []
    with serve() as server, yardstick() as bare:
        cases = gallery.measure(server, bare)
        sections += [gallery.latency_section(cases), load.progress_section(server), gallery.size_section(cases)]
        _, _, trace = gallery.submit(server, EXAMPLES / "matmul.py", "sm_90")
        sections.append(pages.section(server, gallery.submit(server, EXAMPLES / "attention.py", "sm_80")[2]))
        load_section = load.load_section(server, trace)
    sections += [capture.section(), load.cold_section(), load_section]
    write(sections)
    missed = [(section, row) for section in sections for row in section.rows if not row.passes]
    for section in sections:
        for row in section.rows:
            print(f"{section.title}: {row.markdown()}")
    for section, row in missed:
        print(f"missed: {section.title}, {row.name}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
