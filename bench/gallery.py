"""The gallery through the server: how long until a page, against the bare compilation; how much is stored."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.report import Row, Section, shown
from bench.server import Server, unique
from bench.yardstick import EXAMPLES, Yardstick

TARGETS = ("sm_80", "sm_90", "sm_100")
REPEATS = 3
# One launch each: a submission of several configs is a group, and a failure has no PTX to wait for.
KERNELS = (
    "vector_add",
    "softmax",
    "layer_norm",
    "rms_norm",
    "matmul",
    "matmul_descriptors",
    "attention",
    "spilling",
)
MAX_RATIO = 2.0
MIN_SMALLER = 30.0

LATENCY_METHOD = f"""{len(KERNELS)} gallery kernels with one launch each, for {", ".join(TARGETS)}, through
`loupe serve`, warm. From the request that submits a new source, whose launch code is run to find the signature, until
the last byte of the trace page that leads to all passes and PTX (`page`), and until SASS is there too (`whole`).
Against `triton.compile` alone, timed inside a child forked from a warm process (`bare`), and one nvdisasm run over its
cubin with the same flags. Times are medians of {REPEATS} alternating runs, in milliseconds; the ratios of the first
table are medians over all cases."""
SIZE_METHOD = """The `.loupe` file against the raw MLIR dump of the same compilation plus source, LLVM IR, PTX, cubin
and SASS."""

_numbers = itertools.count()


@dataclass(frozen=True)
class Case:
    """One kernel for one target; times in seconds are medians of the repeats, sizes in bytes."""

    kernel: str
    arch: str
    bare: float
    nvdisasm: float
    page: float
    done: float
    raw: int
    stored: int

    @property
    def page_ratio(self) -> float:
        """The page with all passes and PTX against the bare compilation."""
        return self.page / self.bare

    @property
    def done_ratio(self) -> float:
        """The whole trace against the bare compilation and one nvdisasm run."""
        return self.done / (self.bare + self.nvdisasm)

    @property
    def smaller(self) -> float:
        """How many times smaller the trace file is."""
        return self.raw / self.stored


def measure(server: Server, bare: Yardstick) -> list[Case]:
    """Measure every kernel for every target; bare and served compilations alternate."""
    return [_measure(server, bare, EXAMPLES / f"{name}.py", arch) for name in KERNELS for arch in TARGETS]


def _measure(server: Server, bare: Yardstick, path: Path, arch: str) -> Case:
    yardsticks, pages, dones, trace = [], [], [], ""
    for _ in range(REPEATS):
        yardsticks.append(bare.ask("timed", path, arch))
        page, done, trace = submit(server, path, arch)
        pages.append(page)
        dones.append(done)
    sizes = bare.ask("artifacts", path, arch)
    return Case(
        kernel=path.stem,
        arch=arch,
        bare=median(each["compile"] for each in yardsticks),
        nvdisasm=median(each["nvdisasm"] for each in yardsticks),
        page=median(pages),
        done=median(dones),
        raw=sizes["dump"] + sizes["artifacts"],
        stored=len(server.get(f"/api/v1/traces/{trace}/file")),
    )


def submit(server: Server, path: Path, arch: str) -> tuple[float, float, str]:
    """Submit a source never seen before; return the seconds to its page and to its end, and its permalink."""
    source = unique(path.read_text(), next(_numbers))
    start = time.perf_counter()
    trace = server.submit(source, arch)
    server.wait(trace, "passes-ready")
    html = server.get(f"/t/{trace}")
    page = time.perf_counter() - start
    server.wait(trace, "done")
    done = time.perf_counter() - start
    check_page(html.decode(), path, arch)
    return page, done, trace


def check_page(html: str, path: Path, arch: str) -> None:
    """Raise RuntimeError unless the page leads to passes of all three stages and to PTX."""
    for address in ("ttir:1", "ttgir:1", "llvm-dialect:1", "ptx"):
        if not re.search(rf"pass={re.escape(address)}\b", html.replace("%3A", ":")):
            raise RuntimeError(f"the page of {path.name} for {arch} does not lead to {address}")


def latency_section(cases: Sequence[Case]) -> Section:
    """Time to the page, with its gates."""
    rows = [
        Row("page with all passes and PTX / bare compile", median(c.page_ratio for c in cases), "x", MAX_RATIO),
        Row("whole trace with SASS / bare compile + nvdisasm", median(c.done_ratio for c in cases), "x", MAX_RATIO),
        Row("page, at the median", 1000 * median(c.page for c in cases), " ms"),
        Row("page, at worst", 1000 * max(c.page for c in cases), " ms"),
    ]
    table = [
        (
            f"{c.kernel}, {c.arch}",
            *(f"{1000 * t:,.0f}" for t in (c.bare, c.page, c.nvdisasm, c.done)),
            shown(c.page_ratio),
            shown(c.done_ratio),
        )
        for c in cases
    ]
    return Section(
        "Submit to page",
        LATENCY_METHOD,
        rows,
        ("case", "bare", "page", "nvdisasm", "whole", "page ratio", "whole ratio"),
        table,
    )


def size_section(cases: Sequence[Case]) -> Section:
    """Stored size, with its gate."""
    table = [
        (f"{c.kernel}, {c.arch}", f"{c.raw / 1e6:,.2f}", f"{c.stored / 1e3:,.0f}", shown(c.smaller)) for c in cases
    ]
    return Section(
        "Stored size",
        SIZE_METHOD,
        [Row("times smaller, at the median", median(c.smaller for c in cases), "x", MIN_SMALLER, at_least=True)],
        ("case", "raw, MB", "stored, KB", "times smaller"),
        table,
    )
