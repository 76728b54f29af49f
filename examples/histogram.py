"""Histogram with atomics

Counted by tl.histogram in shared memory over many blocks; one atomic a bin and program reaches global memory.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def histogram_kernel(values_ptr, counts_ptr, n_elements, BLOCK: tl.constexpr, BINS: tl.constexpr):
    counts = tl.zeros((BINS,), dtype=tl.int32)
    for start in range(tl.program_id(0) * BLOCK, n_elements, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n_elements
        values = tl.load(values_ptr + offsets, mask=mask, other=0).to(tl.int32)
        counts += tl.histogram(values, BINS, mask=mask)
    bins = tl.arange(0, BINS)
    tl.atomic_add(counts_ptr + bins, counts, mask=counts > 0, sem="relaxed")


@dataclass(frozen=True)
class Buffer:
    """Stands for a contiguous array on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def histogram(values: Buffer, counts: Buffer, programs: int = 264) -> None:
    """Add to counts, a power of two of them; each value is the index of its bin."""
    (n_elements,), (bins,) = values.shape, counts.shape
    histogram_kernel[(programs,)](values, counts, n_elements, BLOCK=2048, BINS=bins, num_warps=4)


if __name__ == "__main__":
    values = Buffer((1 << 24,), tl.uint8)
    counts = Buffer((256,), tl.int32)
    histogram(values, counts)
