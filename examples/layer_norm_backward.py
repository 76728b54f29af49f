"""Layer norm, backward

dx needs two sums a row; weight gradients stay in registers over many rows, a second kernel adds the parts.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def input_gradient_kernel(
    dy_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, dx_ptr, dweight_parts_ptr, dbias_parts_ptr,
    row_stride, n_rows, n_cols, BLOCK: tl.constexpr,
):
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), dtype=tl.float32)
    dbias = tl.zeros((BLOCK,), dtype=tl.float32)

    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * row_stride + columns, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * row_stride + columns, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        normalized = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        dweight += dy * normalized
        dbias += dy
        dnormalized = dy * weight
        along = tl.sum(dnormalized * normalized, axis=0) / n_cols
        shift = tl.sum(dnormalized, axis=0) / n_cols
        dx = (dnormalized - normalized * along - shift) * rstd
        tl.store(dx_ptr + row * row_stride + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)

    part = tl.program_id(0) * n_cols + columns
    tl.store(dweight_parts_ptr + part, dweight, mask=mask)
    tl.store(dbias_parts_ptr + part, dbias, mask=mask)


@triton.jit
def add_parts_kernel(
    dweight_parts_ptr, dbias_parts_ptr, dweight_ptr, dbias_ptr, n_parts, n_cols,
    BLOCK_PARTS: tl.constexpr, BLOCK: tl.constexpr,
):
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dweight = tl.zeros((BLOCK_PARTS, BLOCK), dtype=tl.float32)
    dbias = tl.zeros((BLOCK_PARTS, BLOCK), dtype=tl.float32)
    for first in range(0, n_parts, BLOCK_PARTS):
        parts = first + tl.arange(0, BLOCK_PARTS)
        mask = (parts[:, None] < n_parts) & (columns[None, :] < n_cols)
        offsets = parts[:, None] * n_cols + columns[None, :]
        dweight += tl.load(dweight_parts_ptr + offsets, mask=mask, other=0.0)
        dbias += tl.load(dbias_parts_ptr + offsets, mask=mask, other=0.0)
    mask = columns < n_cols
    tl.store(dweight_ptr + columns, tl.sum(dweight, axis=0).to(dweight_ptr.dtype.element_ty), mask=mask)
    tl.store(dbias_ptr + columns, tl.sum(dbias, axis=0).to(dbias_ptr.dtype.element_ty), mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def layer_norm_backward(
    dy: Buffer, x: Buffer, weight: Buffer, mean: Buffer, rstd: Buffer, dx: Buffer, dweight: Buffer, dbias: Buffer,
    programs: int = 264,
) -> None:
    n_rows, n_cols = x.shape
    dweight_parts, dbias_parts = (Buffer((programs, n_cols), tl.float32) for _ in range(2))
    input_gradient_kernel[(programs,)](
        dy, x, weight, mean, rstd, dx, dweight_parts, dbias_parts, n_cols, n_rows, n_cols,
        BLOCK=triton.next_power_of_2(n_cols), num_warps=8,
    )
    add_parts_kernel[(triton.cdiv(n_cols, 128),)](
        dweight_parts, dbias_parts, dweight, dbias, programs, n_cols, BLOCK_PARTS=32, BLOCK=128,
    )


if __name__ == "__main__":
    rows, columns = 4096, 4096
    dy, x, dx = (Buffer((rows, columns), tl.float16) for _ in range(3))
    weight, dweight, dbias = (Buffer((columns,), tl.float16) for _ in range(3))
    mean, rstd = (Buffer((rows,), tl.float32) for _ in range(2))
    layer_norm_backward(dy, x, weight, mean, rstd, dx, dweight, dbias)
