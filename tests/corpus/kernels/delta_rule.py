"""Gated delta rule: recurrent decode in place of states, the triangular inverse, and a chunk's WY products."""

import torch
import triton
import triton.language as tl


@triton.jit
def l2norm_fwd_kernel(x, y, rstd, eps, T, D: tl.constexpr, BD: tl.constexpr, BT: tl.constexpr):
    rows = tl.program_id(0) * BT + tl.arange(0, BT)
    cols = tl.arange(0, BD)
    mask = (rows[:, None] < T) & (cols[None, :] < D)
    b_x = tl.load(x + rows[:, None] * D + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    b_r = 1 / tl.sqrt(tl.sum(b_x * b_x, 1) + eps)
    tl.store(y + rows[:, None] * D + cols[None, :], b_x * b_r[:, None], mask=mask)
    tl.store(rstd + rows, b_r, mask=rows < T)


@triton.heuristics({"USE_INITIAL_STATE": lambda args: args["h0"] is not None, "IS_BETA_HEADWISE": lambda args: args["beta"].ndim == args["v"].ndim})
@triton.jit(do_not_specialize=["T"])
def fused_recurrent_gated_delta_rule_fwd_kernel(
    q, k, v, g, beta, o, h0, ht, state_indices, scale, T,
    H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    USE_INITIAL_STATE: tl.constexpr, IS_BETA_HEADWISE: tl.constexpr, USE_QK_L2NORM: tl.constexpr,
):
    i_v, i_nh = tl.program_id(0), tl.program_id(1)
    i_n, i_hv = i_nh // HV, i_nh % HV
    i_h = i_hv // (HV // H)
    bos = i_n * T
    o_k = tl.arange(0, BK)
    o_v = i_v * BV + tl.arange(0, BV)
    p_q = q + (bos * H + i_h) * K + o_k
    p_k = k + (bos * H + i_h) * K + o_k
    p_v = v + (bos * HV + i_hv) * V + o_v
    p_o = o + (bos * HV + i_hv) * V + o_v
    p_g = g + bos * HV + i_hv
    if IS_BETA_HEADWISE:
        p_beta = beta + (bos * HV + i_hv) * V + o_v
    else:
        p_beta = beta + bos * HV + i_hv
    mask_k, mask_v = o_k < K, o_v < V
    mask_h = mask_k[:, None] & mask_v[None, :]
    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    if USE_INITIAL_STATE:
        slot = tl.load(state_indices + i_n).to(tl.int64)
        p_h0 = h0 + (slot * HV + i_hv) * K * V + o_k[:, None] * V + o_v[None, :]
        b_h += tl.load(p_h0, mask=mask_h, other=0.0).to(tl.float32)
    for _ in range(0, T):
        b_q = tl.load(p_q, mask=mask_k, other=0).to(tl.float32)
        b_k = tl.load(p_k, mask=mask_k, other=0).to(tl.float32)
        b_v = tl.load(p_v, mask=mask_v, other=0).to(tl.float32)
        if USE_QK_L2NORM:
            b_q = b_q * tl.rsqrt(tl.sum(b_q * b_q) + 1e-6)
            b_k = b_k * tl.rsqrt(tl.sum(b_k * b_k) + 1e-6)
        b_q = b_q * scale
        b_h *= tl.exp(tl.load(p_g).to(tl.float32))
        b_v -= tl.sum(b_h * b_k[:, None], 0)
        if IS_BETA_HEADWISE:
            b_beta = tl.load(p_beta, mask=mask_v, other=0).to(tl.float32)
        else:
            b_beta = tl.load(p_beta).to(tl.float32)
        b_v *= b_beta
        b_h += b_k[:, None] * b_v[None, :]
        tl.store(p_o, tl.sum(b_h * b_q[:, None], 0).to(p_o.dtype.element_ty), mask=mask_v)
        p_q += H * K
        p_k += H * K
        p_o += HV * V
        p_v += HV * V
        p_g += HV
        p_beta += HV * (V if IS_BETA_HEADWISE else 1)
    tl.store(ht + i_nh * K * V + o_k[:, None] * V + o_v[None, :], b_h.to(ht.dtype.element_ty), mask=mask_h)


@triton.jit
def chunk_scaled_dot_kkt_kernel(k, g, beta, A, T, H: tl.constexpr, K: tl.constexpr, BT: tl.constexpr, USE_G: tl.constexpr):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    row = (i_b * T + o_t) * H + i_h
    b_k = tl.load(k + row[:, None] * K + tl.arange(0, K)[None, :], mask=m_t[:, None], other=0.0)
    b_beta = tl.load(beta + row, mask=m_t, other=0.0)
    b_A = tl.dot((b_k * b_beta[:, None]).to(b_k.dtype), tl.trans(b_k))
    if USE_G:
        b_g = tl.load(g + row, mask=m_t, other=0.0)
        b_A *= tl.exp(b_g[:, None] - b_g[None, :])
    lower = tl.arange(0, BT)[:, None] > tl.arange(0, BT)[None, :]
    b_A = tl.where(lower & m_t[:, None] & m_t[None, :], b_A, 0.0)
    tl.store(A + row[:, None] * BT + tl.arange(0, BT)[None, :], b_A.to(A.dtype.element_ty), mask=m_t[:, None])


@triton.jit
def solve_tril_kernel(A, Ai, T, H: tl.constexpr, BT: tl.constexpr):
    """Invert I + A by forward substitution, a row at a time, A strictly lower."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_i = tl.arange(0, BT)
    row = (i_b * T + i_t * BT + o_i) * H + i_h
    m_t = i_t * BT + o_i < T
    b_A = -tl.where((o_i[:, None] > o_i[None, :]) & m_t[:, None], tl.load(A + row[:, None] * BT + o_i[None, :], mask=m_t[:, None], other=0.0), 0)
    for i in range(1, BT):
        b_a = tl.sum(tl.where((o_i == i)[:, None], b_A, 0.0), 0)
        b_a = b_a + tl.sum(b_a[:, None] * b_A, 0) * (o_i < i)
        b_A = tl.where((o_i == i)[:, None], b_a, b_A)
    b_A += o_i[:, None] == o_i[None, :]
    tl.store(Ai + row[:, None] * BT + o_i[None, :], b_A.to(Ai.dtype.element_ty), mask=m_t[:, None])


@triton.jit
def recompute_w_u_kernel(k, v, beta, w, u, Ai, g, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    row = (i_b * T + o_t) * H + i_h
    b_A = tl.load(Ai + row[:, None] * BT + tl.arange(0, BT)[None, :], mask=m_t[:, None], other=0.0)
    b_beta = tl.load(beta + row, mask=m_t, other=0.0)
    b_g = tl.exp(tl.load(g + row, mask=m_t, other=0.0))
    for i_v in tl.static_range(tl.cdiv(V, BK)):
        at = row[:, None] * V + i_v * BK + tl.arange(0, BK)[None, :]
        b_v = tl.load(v + at, mask=m_t[:, None], other=0.0)
        b_u = tl.dot(b_A.to(b_v.dtype), (b_v * b_beta[:, None]).to(b_v.dtype), out_dtype=tl.float32)
        tl.store(u + at, b_u.to(u.dtype.element_ty), mask=m_t[:, None])
    for i_k in tl.static_range(tl.cdiv(K, BK)):
        at = row[:, None] * K + i_k * BK + tl.arange(0, BK)[None, :]
        b_k = tl.load(k + at, mask=m_t[:, None], other=0.0)
        b_w = tl.dot(b_A.to(b_k.dtype), (b_k * (b_beta * b_g)[:, None]).to(b_k.dtype))
        tl.store(w + at, b_w.to(w.dtype.element_ty), mask=m_t[:, None])


if __name__ == "__main__":
    B, T, H, K, V = 2, 48, 2, 64, 64
    q, k, v = (torch.randn(B, T, H, K, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    rows = B * T * H
    l2norm_fwd_kernel[(triton.cdiv(rows, 16),)](k, torch.empty_like(k), torch.empty(rows, device="cuda"), 1e-6, rows, D=K, BD=K, BT=16)
    g = -torch.rand(B, T, H, device="cuda")
    beta = torch.rand(B, T, H, device="cuda", dtype=torch.bfloat16)
    ht = torch.empty(B, H, K, V, device="cuda")
    states = torch.zeros(8, H, K, V, device="cuda")
    slots = torch.tensor([3, 5], device="cuda", dtype=torch.int32)
    for b, h0 in ((beta, None), (torch.rand(B, T, H, V, device="cuda"), states)):
        fused_recurrent_gated_delta_rule_fwd_kernel[(V // 32, B * H)](
            q=q, k=k, v=v, g=g, beta=b, o=torch.empty_like(v), h0=h0, ht=ht, state_indices=slots, scale=K**-0.5, T=T,
            H=H, HV=H, K=K, V=V, BK=64, BV=32, USE_QK_L2NORM=h0 is not None, num_warps=1, num_stages=3,
        )
    A = torch.empty(B, T, H, 16, device="cuda")
    chunk_scaled_dot_kkt_kernel[(3, B * H)](k, g, beta, A, T, H=H, K=K, BT=16, USE_G=True)
    Ai = torch.empty_like(A)
    solve_tril_kernel[(3, B * H)](A, Ai, T, H=H, BT=16)
    recompute_w_u_kernel[(3, B * H)](k, v, beta, torch.empty_like(k), torch.empty_like(v), Ai, g, T, H=H, K=K, V=V, BT=16, BK=32)
