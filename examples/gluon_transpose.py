"""A Gluon kernel

Layouts are written by hand, so there is no ttir, no coalesce; a swizzled buffer carries one into the other.
"""

from dataclasses import dataclass

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def transpose_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK: gl.constexpr):
    # Both have four elements a thread along the contiguous dimension, which for the store is the other one.
    load_layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    store_layout: gl.constexpr = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1])
    shared_layout: gl.constexpr = gl.SwizzledSharedLayout(vec=4, per_phase=1, max_phase=8, order=[1, 0])

    rows = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, load_layout))
    columns = gl.program_id(1) * BLOCK + gl.arange(0, BLOCK, layout=gl.SliceLayout(0, load_layout))
    mask = (rows[:, None] < n_rows) & (columns[None, :] < n_cols)
    tile = gl.load(x_ptr + rows[:, None] * n_cols + columns[None, :], mask=mask)

    shared = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [BLOCK, BLOCK], shared_layout, tile)
    tile = shared.load(store_layout)

    rows = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, store_layout))
    columns = gl.program_id(1) * BLOCK + gl.arange(0, BLOCK, layout=gl.SliceLayout(0, store_layout))
    mask = (rows[:, None] < n_rows) & (columns[None, :] < n_cols)
    gl.store(out_ptr + columns[None, :] * n_rows + rows[:, None], tile, mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major matrix on the device: all of it that a launch reads."""

    shape: tuple[int, int]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def transpose(x: Buffer, out: Buffer) -> None:
    n_rows, n_cols = x.shape
    block = 64
    transpose_kernel[(triton.cdiv(n_rows, block), triton.cdiv(n_cols, block))](
        x, out, n_rows, n_cols, BLOCK=block, num_warps=4
    )


if __name__ == "__main__":
    x, out = (Buffer((4096, 4096), tl.float32) for _ in range(2))
    transpose(x, out)
