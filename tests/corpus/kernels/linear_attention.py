"""Chunked linear attention with decay: states passed between chunks, outputs inside, flags by heuristics, int64 offsets."""

from typing import Optional

import torch
import triton
import triton.language as tl

NUM_WARPS = [2, 4]


@triton.heuristics(
    {
        "USE_INITIAL_STATE": lambda args: args["h0"] is not None,
        "STORE_FINAL_STATE": lambda args: args["ht"] is not None,
        "USE_G": lambda args: args["g"] is not None,
        "IS_VARLEN": lambda args: args["cu_seqlens"] is not None,
    }
)
@triton.autotune(configs=[triton.Config({}, num_warps=w, num_stages=2) for w in NUM_WARPS], key=["BT", "USE_G"])
@triton.jit(do_not_specialize=["T"])
def chunk_fwd_kernel_h(
    k, v, h, g, h0, ht, cu_seqlens, chunk_offsets, T,
    H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    USE_G: tl.constexpr, USE_INITIAL_STATE: tl.constexpr, STORE_FINAL_STATE: tl.constexpr, IS_VARLEN: tl.constexpr,
):
    i_k, i_v, i_nh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_n, i_h = i_nh // H, i_nh % H
    if IS_VARLEN:
        bos, eos = tl.load(cu_seqlens + i_n).to(tl.int32), tl.load(cu_seqlens + i_n + 1).to(tl.int32)
        T = eos - bos
        boh = tl.load(chunk_offsets + i_n).to(tl.int64)
    else:
        bos, eos = i_n * T, i_n * T + T
        boh = (i_n * tl.cdiv(T, BT)).to(tl.int64)
    NT = tl.cdiv(T, BT)
    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    o_k = i_k * BK + tl.arange(0, BK)
    o_v = i_v * BV + tl.arange(0, BV)
    m_h = (o_k[:, None] < K) & (o_v[None, :] < V)
    if USE_INITIAL_STATE:
        b_h = tl.load(h0 + i_nh * K * V + o_k[:, None] * V + o_v[None, :], mask=m_h, other=0.0).to(tl.float32)
    for i_t in range(NT):
        tl.store(h + ((boh + i_t) * H + i_h) * K * V + o_k[:, None] * V + o_v[None, :], b_h.to(h.dtype.element_ty), mask=m_h)
        o_t = i_t * BT + tl.arange(0, BT)
        m_t = o_t < T
        b_k = tl.load(k + ((bos + o_t) * H + i_h)[None, :] * K + o_k[:, None], mask=(o_k[:, None] < K) & m_t[None, :], other=0.0)
        b_v = tl.load(v + ((bos + o_t) * H + i_h)[:, None] * V + o_v[None, :], mask=m_t[:, None] & (o_v[None, :] < V), other=0.0)
        if USE_G:
            last = tl.minimum((i_t + 1) * BT, T) - 1
            b_g_last = tl.load(g + (bos + last) * H + i_h)
            b_g = tl.load(g + (bos + o_t) * H + i_h, mask=m_t, other=0.0)
            b_h *= tl.exp(b_g_last)
            b_v = (b_v * tl.exp(b_g_last - b_g)[:, None]).to(b_v.dtype)
        b_h += tl.dot(b_k, b_v)
    if STORE_FINAL_STATE:
        tl.store(ht + i_nh * K * V + o_k[:, None] * V + o_v[None, :], b_h.to(ht.dtype.element_ty), mask=m_h)


@triton.jit
def chunk_fwd_kernel_o(
    q, k, v, h, g, o, scale, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
    BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, USE_G: tl.constexpr,
):
    i_v, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    NT = tl.cdiv(T, BT)
    bos = i_b * T
    o_t = i_t * BT + tl.arange(0, BT)
    o_v = i_v * BV + tl.arange(0, BV)
    m_t = o_t < T
    b_o = tl.zeros([BT, BV], dtype=tl.float32)
    b_A = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        o_k = i_k * BK + tl.arange(0, BK)
        b_q = tl.load(q + ((bos + o_t) * H + i_h)[:, None] * K + o_k[None, :], mask=m_t[:, None] & (o_k[None, :] < K), other=0.0)
        b_k = tl.load(k + ((bos + o_t) * H + i_h)[None, :] * K + o_k[:, None], mask=m_t[None, :] & (o_k[:, None] < K), other=0.0)
        b_h = tl.load(
            h + ((i_b * NT + i_t).to(tl.int64) * H + i_h) * K * V + o_k[:, None] * V + o_v[None, :],
            mask=(o_k[:, None] < K) & (o_v[None, :] < V), other=0.0,
        )
        b_o += tl.dot(b_q, b_h)
        b_A += tl.dot(b_q, b_k)
    if USE_G:
        b_g = tl.load(g + (bos + o_t) * H + i_h, mask=m_t, other=0.0)
        b_o *= tl.exp(b_g)[:, None]
        b_A *= tl.exp(b_g[:, None] - b_g[None, :])
    at = tl.arange(0, BT)
    b_A = tl.where((at[:, None] >= at[None, :]) & m_t[:, None] & m_t[None, :], b_A, 0)
    b_v = tl.load(v + ((bos + o_t) * H + i_h)[:, None] * V + o_v[None, :], mask=m_t[:, None] & (o_v[None, :] < V), other=0.0)
    b_o = b_o * scale + tl.dot(b_A.to(b_v.dtype), b_v) * scale
    tl.store(o + ((bos + o_t) * H + i_h)[:, None] * V + o_v[None, :], b_o.to(o.dtype.element_ty), mask=m_t[:, None] & (o_v[None, :] < V))


@triton.jit
def chunk_local_cumsum_kernel(s, o, T, H: tl.constexpr, BT: tl.constexpr, REVERSE: tl.constexpr):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    at = i_t * BT + tl.arange(0, BT)
    b_s = tl.load(s + (i_b * T + at) * H + i_h, mask=at < T, other=0.0).to(tl.float32)
    b_o = tl.cumsum(b_s, axis=0)
    if REVERSE:
        b_o = -b_o + tl.sum(b_s, axis=0)[None] + b_s
    tl.store(o + (i_b * T + at) * H + i_h, b_o.to(o.dtype.element_ty), mask=at < T)


@triton.jit
def retention_parallel_bwd_kernel(q, k, v, do, dq, dk, dv, scale, T, H: tl.constexpr, D: tl.constexpr, BT: tl.constexpr):
    """One chunk of a retention head, whole in registers; the head's decay is made from its number."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    b_b = tl.math.log2(1 - tl.math.exp2(-5 - (i_bh % H) * 1.0))
    o_t = i_t * BT + tl.arange(0, BT)
    at = (i_bh * T + o_t)[:, None] * D + tl.arange(0, D)[None, :]
    m = o_t[:, None] < T
    b_q, b_k = tl.load(q + at, mask=m, other=0.0), tl.load(k + at, mask=m, other=0.0)
    b_v, b_do = tl.load(v + at, mask=m, other=0.0), tl.load(do + at, mask=m, other=0.0)
    i = tl.arange(0, BT)
    distance = (i[:, None] - i[None, :]).to(tl.float32)
    decay = tl.where(i[:, None] >= i[None, :], tl.math.exp2(distance * b_b), 0.0) * scale
    b_ds = (tl.dot(b_do, tl.trans(b_v)) * decay).to(b_q.dtype)
    b_s = (tl.dot(b_q, tl.trans(b_k)) * decay).to(b_q.dtype)
    tl.store(dq + at, tl.dot(b_ds, b_k).to(dq.dtype.element_ty), mask=m)
    tl.store(dk + at, tl.dot(tl.trans(b_ds), b_q).to(dk.dtype.element_ty), mask=m)
    tl.store(dv + at, tl.dot(tl.trans(b_s), b_do).to(dv.dtype.element_ty), mask=m)


def chunk_linear_attn(q, k, v, g: Optional[torch.Tensor] = None, h0=None, final=False, cu_seqlens=None, chunk=32):
    B, T, H, K, V = *k.shape, v.shape[-1]
    n = B if cu_seqlens is None else len(cu_seqlens) - 1
    if cu_seqlens is None:
        NT, offsets = triton.cdiv(T, chunk), None
    else:
        counts = [triton.cdiv(int(b - a), chunk) for a, b in zip(cu_seqlens[:-1].tolist(), cu_seqlens[1:].tolist())]
        NT = sum(counts)
        offsets = torch.tensor([sum(counts[:i]) for i in range(n)], device=k.device)
    h = k.new_empty(B, NT, H, K, V)
    ht = k.new_empty(n, H, K, V, dtype=torch.float) if final else None
    chunk_fwd_kernel_h[lambda meta: (triton.cdiv(K, meta["BK"]), triton.cdiv(V, meta["BV"]), n * H)](
        k=k, v=v, h=h, g=g, h0=h0, ht=ht, cu_seqlens=cu_seqlens, chunk_offsets=offsets, T=T, H=H, K=K, V=V, BT=chunk, BK=32, BV=32
    )
    o = torch.empty_like(v)
    if cu_seqlens is None:
        chunk_fwd_kernel_o[(triton.cdiv(V, 32), NT, B * H)](
            q, k, v, h, g, o, K**-0.5, T, H=H, K=K, V=V, BT=chunk, BK=32, BV=32, USE_G=g is not None
        )
    return o, ht


if __name__ == "__main__":
    q, k, v = (torch.randn(2, 72, 2, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    chunk_linear_attn(q, k, v)
    decay = torch.nn.functional.logsigmoid(torch.randn(2, 72, 2, device="cuda"))
    g = torch.empty_like(decay)
    for reverse in (False, True):
        chunk_local_cumsum_kernel[(3, 4)](decay, g, 72, H=2, BT=32, REVERSE=reverse)
    chunk_linear_attn(q, k, v, g, h0=torch.zeros(2, 2, 64, 64, device="cuda"), final=True)
    chunk_linear_attn(q[:1], k[:1], v[:1], cu_seqlens=torch.tensor([0, 30, 72], device="cuda"), final=True)
    heads = torch.randn(4, 64, 32, device="cuda", dtype=torch.float16)
    d = [torch.empty_like(heads) for _ in range(3)]
    retention_parallel_bwd_kernel[(2, 4)](heads, heads, heads, heads, *d, 32**-0.5, 64, H=2, D=32, BT=32)
