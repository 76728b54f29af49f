import torch
import triton
import triton.language as tl

from . import helpers
from .helpers import row_mask


@triton.jit
def up_kernel(x_ptr, gate_ptr, up_ptr, h_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    gate = tl.zeros((BM, BN), tl.float32)
    up = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None] & (rk < K)[None, :], other=0.0)
        at = rk[:, None] * N + rn[None, :]
        mask = (rk < K)[:, None] & (rn < N)[None, :]
        gate = tl.dot(x, tl.load(gate_ptr + at, mask=mask, other=0.0), gate)
        up = tl.dot(x, tl.load(up_ptr + at, mask=mask, other=0.0), up)
    h = gate * tl.sigmoid(gate) * up
    tl.store(h_ptr + rm[:, None] * N + rn[None, :], h.to(h_ptr.dtype.element_ty), mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def scale_rows_kernel(x_ptr, scale_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols, mask = row_mask(n_cols, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    scale = helpers.rms_scale(x, n_cols)
    tl.store(scale_ptr + row, scale)


def feed_forward(x, gate, up):
    M, K, N = x.shape[0], x.shape[1], gate.shape[1]
    h = torch.empty(M, N, device=x.device, dtype=x.dtype)
    up_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, gate, up, h, M, N, K, BM=32, BN=32, BK=32)
    scales = torch.empty(M, device=x.device)
    scale_rows_kernel[(M,)](h, scales, N, BLOCK=triton.next_power_of_2(N))
    return h, scales
