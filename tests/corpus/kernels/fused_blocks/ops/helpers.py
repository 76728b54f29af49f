import triton
import triton.language as tl

from ..config import EPS


@triton.jit
def row_mask(n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    return cols, cols < n_cols


@triton.jit
def rms_scale(x, n_cols):
    return tl.rsqrt(tl.sum(x * x, 0) / n_cols + EPS)
