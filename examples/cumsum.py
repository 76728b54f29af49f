"""Cumulative sum

A scan goes through lanes by shuffles, then through warps by shared memory; the loop carries each row's total.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n_cols
        x = tl.load(x_ptr + row * row_stride + columns, mask=mask, other=0.0)
        tl.store(out_ptr + row * row_stride + columns, total + tl.cumsum(x, axis=0), mask=mask)
        total += tl.sum(x, axis=0)


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major matrix on the device: all of it that a launch reads."""

    shape: tuple[int, int]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def cumsum(x: Buffer, out: Buffer) -> None:
    n_rows, n_cols = x.shape
    cumsum_kernel[(n_rows,)](x, out, n_cols, n_cols, BLOCK=1024, num_warps=4)


if __name__ == "__main__":
    x, out = (Buffer((2048, 16_384), tl.float32) for _ in range(2))
    cumsum(x, out)
