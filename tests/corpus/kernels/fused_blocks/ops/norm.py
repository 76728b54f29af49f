import torch
import triton
import triton.language as tl

from ..config import WARPS
from .helpers import rms_scale, row_mask


@triton.jit
def normalize_kernel(x_ptr, w_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols, mask = row_mask(n_cols, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    y = x * rms_scale(x, n_cols) * tl.load(w_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def normalize(x, weight):
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[-1])
    normalize_kernel[(x.numel() // x.shape[-1],)](x, weight, y, x.shape[-1], BLOCK=block, num_warps=WARPS.get(block, 8))
    return y
