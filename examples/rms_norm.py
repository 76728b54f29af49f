"""RMS norm with a fused residual

The sum is normalized from registers; HAS_RESIDUAL is a constexpr, so its branch is gone before any pass runs.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    x_ptr, residual_ptr, weight_ptr, out_ptr, row_stride, n_cols, eps,
    BLOCK: tl.constexpr, HAS_RESIDUAL: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols

    x = tl.load(x_ptr + row * row_stride + columns, mask=mask, other=0.0).to(tl.float32)
    if HAS_RESIDUAL:
        residual_ptrs = residual_ptr + row * row_stride + columns
        x += tl.load(residual_ptrs, mask=mask, other=0.0).to(tl.float32)
        tl.store(residual_ptrs, x.to(residual_ptr.dtype.element_ty), mask=mask)

    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
    y = x * rstd * weight
    tl.store(out_ptr + row * row_stride + columns, y.to(out_ptr.dtype.element_ty), mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def rms_norm(x: Buffer, residual: Buffer | None, weight: Buffer, out: Buffer, eps: float = 1e-6) -> None:
    n_rows, n_cols = x.shape
    rms_norm_kernel[(n_rows,)](
        x, residual, weight, out, n_cols, n_cols, eps,
        BLOCK=triton.next_power_of_2(n_cols), HAS_RESIDUAL=residual is not None, num_warps=8,
    )


if __name__ == "__main__":
    x, residual, out = (Buffer((8192, 4096), tl.bfloat16) for _ in range(3))
    weight = Buffer((4096,), tl.bfloat16)
    rms_norm(x, residual, weight, out)
