"""Transpose, a bad and a good one

By rows, neighbouring threads store far apart; by tiles, a layout conversion through shared memory mends that.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def transpose_rows_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=mask)
    tl.store(out_ptr + columns * n_rows + row, x, mask=mask)


@triton.jit
def transpose_tiles_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows[:, None] < n_rows) & (columns[None, :] < n_cols)
    x = tl.load(x_ptr + rows[:, None] * n_cols + columns[None, :], mask=mask)
    tl.store(out_ptr + columns[:, None] * n_rows + rows[None, :], x.T, mask=mask.T)


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major matrix on the device: all of it that a launch reads."""

    shape: tuple[int, int]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def transpose(x: Buffer, out: Buffer) -> None:
    n_rows, n_cols = x.shape
    transpose_rows_kernel[(n_rows, triton.cdiv(n_cols, 1024))](x, out, n_rows, n_cols, BLOCK=1024)
    transpose_tiles_kernel[(triton.cdiv(n_rows, 64), triton.cdiv(n_cols, 64))](x, out, n_rows, n_cols, BLOCK=64)


if __name__ == "__main__":
    x, out = (Buffer((4096, 4096), tl.float32) for _ in range(2))
    transpose(x, out)
