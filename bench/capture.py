"""Capture: how long until the launches of a source are known, without torch, with its stand-in, with the real one."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from bench.report import Row, Section
from bench.yardstick import EXAMPLES
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.spec import CompileSpec, Event
from pipelines.triton_path.toolchain import torch_root

REPEATS = 9
TARGET = "sm_90"
MAX_PLAIN_MS = 150.0
MAX_TORCH_MS = 400.0
METHOD = f"""From asking a warm compiler, which stands in front of its warm zygotes, until it tells of the source's
launches: a child is forked and confined, the source runs, its launches are read back. {REPEATS} runs each, the median.
The source without torch is the gallery's layer norm; the one with torch is an autotuned softmax over 4096 x 8192
elements, compared with torch's own and timed over eight sizes as tutorials do."""

TORCH_SOURCE = """
import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({}, num_warps=w) for w in (2, 4, 8, 16)], key=["n_cols"])
@triton.jit
def softmax_kernel(out_ptr, x_ptr, stride, n_cols, BLOCK: tl.constexpr):
    at = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=tl.arange(0, BLOCK) < n_cols, other=-float("inf"))
    raised = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + at, raised / tl.sum(raised, axis=0), mask=tl.arange(0, BLOCK) < n_cols)


def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](out, x, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


x = torch.randn(4096, 8192, device="cuda", dtype=torch.float16)
torch.testing.assert_close(softmax(x), torch.softmax(x, dim=-1))
for n in range(1, 9):
    x = torch.randn(1024 * n, 1024, device="cuda")
    triton.testing.do_bench(lambda: torch.softmax(x, dim=-1))
    triton.testing.do_bench(lambda: softmax(x))
"""


class _KnownError(Exception):
    """The launches are known: the rest of the compilation is of no interest."""


def section() -> Section:
    """Measure, in a compiler of its own."""
    plain = (EXAMPLES / "layer_norm.py").read_text()
    with tempfile.TemporaryDirectory() as directory:
        compiler = Compiler(Path(directory))
        try:
            compiler.start()
            # The first run with torch waits for its zygote, after which nothing else runs here.
            with_torch, without = (_milliseconds(compiler, source) for source in (TORCH_SOURCE, plain))
        finally:
            compiler.close()
    used = "its stand-in" if torch_root() is None else "the real torch"
    rows = [
        Row("launches known, without torch", without, " ms", MAX_PLAIN_MS),
        Row(f"launches known, with {used}", with_torch, " ms", MAX_TORCH_MS),
    ]
    return Section("Capture", METHOD, rows)


def _milliseconds(compiler: Compiler, source: str) -> float:
    return 1000 * median(_seconds(compiler, source) for _ in range(REPEATS + 1))


def _seconds(compiler: Compiler, source: str) -> float:
    began = time.perf_counter()

    def stop(event: Event) -> None:
        if event.kind == "launches":
            raise _KnownError

    try:
        compiler.compile(CompileSpec(source=source, target=TARGET), stop)
    except _KnownError:
        return time.perf_counter() - began
    raise RuntimeError("the source made no launch")


if __name__ == "__main__":
    for row in section().rows:
        print(row.markdown())
