"""A misaligned strided load

One kernel, launched on a matrix and a view of it: nothing divides the view's strides, so no access is wide.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def row_sums_kernel(x_ptr, out_ptr, row_stride, column_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * row_stride + columns * column_stride, mask=columns < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


@dataclass(frozen=True)
class Buffer:
    """Stands for a matrix on the device, or a view of one: all of it that a launch reads."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: tl.dtype
    address: int = 0

    def data_ptr(self) -> int:
        return self.address


def row_sums(x: Buffer, out: Buffer) -> None:
    n_rows, n_cols = x.shape
    row_sums_kernel[(n_rows,)](x, out, *x.strides, n_cols, BLOCK=triton.next_power_of_2(n_cols))


if __name__ == "__main__":
    whole = Buffer((4096, 1008), (1008, 1), tl.float32)
    # Every third column of a matrix of 3025, beginning with the second.
    view = Buffer((4096, 1008), (3025, 3), tl.float32, address=4)
    out = Buffer((4096,), (1,), tl.float32)
    row_sums(whole, out)
    row_sums(view, out)
