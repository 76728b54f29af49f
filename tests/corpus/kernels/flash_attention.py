"""Flash attention, forward and backward: heuristics, configs with hooks, bias or alibi, and a dq that is added atomically."""

import math

import torch
import triton
import triton.language as tl


def init_to_zero(name):
    return lambda nargs: nargs[name].zero_()


@triton.heuristics(
    {
        "EVEN_M": lambda args: args["seqlen_q"] % args["BLOCK_M"] == 0,
        "EVEN_N": lambda args: args["seqlen_k"] % args["BLOCK_N"] == 0,
    }
)
@triton.jit
def _fwd_kernel(
    Q, K, V, Bias, Out, Lse, softmax_scale,
    stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn, stride_vb, stride_vh, stride_vn,
    stride_bb, stride_bh, stride_bm, stride_ob, stride_oh, stride_om,
    nheads, seqlen_q, seqlen_k, seqlen_q_rounded, CACHE_KEY_SEQLEN_Q,
    BIAS_TYPE: tl.constexpr, IS_CAUSAL: tl.constexpr, BLOCK_HEADDIM: tl.constexpr,
    EVEN_M: tl.constexpr, EVEN_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    start_m = tl.program_id(0)
    off_hb = tl.program_id(1)
    off_b = off_hb // nheads
    off_h = off_hb % nheads
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, BLOCK_HEADDIM)
    q_ptrs = Q + off_b * stride_qb + off_h * stride_qh + (offs_m[:, None] * stride_qm + offs_d[None, :])
    k_ptrs = K + off_b * stride_kb + off_h * stride_kh + (offs_n[:, None] * stride_kn + offs_d[None, :])
    v_ptrs = V + off_b * stride_vb + off_h * stride_vh + (offs_n[:, None] * stride_vn + offs_d[None, :])
    if BIAS_TYPE == "vector":
        b_ptrs = Bias + off_b * stride_bb + off_h * stride_bh + offs_n
    elif BIAS_TYPE == "matrix":
        b_ptrs = Bias + off_b * stride_bb + off_h * stride_bh + (offs_m[:, None] * stride_bm + offs_n[None, :])
    lse_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    acc_o = tl.zeros([BLOCK_M, BLOCK_HEADDIM], dtype=tl.float32)
    if EVEN_M:
        q = tl.load(q_ptrs)
    else:
        q = tl.load(q_ptrs, mask=offs_m[:, None] < seqlen_q, other=0.0)
    end_n = seqlen_k if not IS_CAUSAL else tl.minimum((start_m + 1) * BLOCK_M, seqlen_k)
    for start_n in range(0, end_n, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        if EVEN_N & EVEN_M:
            k = tl.load(k_ptrs + start_n * stride_kn)
        else:
            k = tl.load(k_ptrs + start_n * stride_kn, mask=(start_n + offs_n)[:, None] < seqlen_k, other=0.0)
        qk = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
        qk += tl.dot(q, tl.trans(k))
        if not EVEN_N:
            qk += tl.where((start_n + offs_n)[None, :] < seqlen_k, 0, float("-inf"))
        if IS_CAUSAL:
            qk += tl.where(offs_m[:, None] >= (start_n + offs_n)[None, :], 0, float("-inf"))
        if BIAS_TYPE != "none":
            if BIAS_TYPE == "vector":
                bias = tl.load(b_ptrs + start_n, mask=start_n + offs_n < seqlen_k, other=0.0).to(tl.float32)[None, :]
            else:
                bias = tl.load(
                    b_ptrs + start_n,
                    mask=(offs_m[:, None] < seqlen_q) & ((start_n + offs_n)[None, :] < seqlen_k), other=0.0,
                ).to(tl.float32)
            qk = qk * softmax_scale + bias
            m_ij = tl.maximum(tl.max(qk, 1), lse_i)
            p = tl.exp(qk - m_ij[:, None])
        else:
            m_ij = tl.maximum(tl.max(qk, 1) * softmax_scale, lse_i)
            p = tl.exp(qk * softmax_scale - m_ij[:, None])
        l_ij = tl.sum(p, 1)
        acc_o = acc_o * tl.exp(m_i - m_ij)[:, None]
        v = tl.load(v_ptrs + start_n * stride_vn, mask=(start_n + offs_n)[:, None] < seqlen_k, other=0.0)
        acc_o += tl.dot(p.to(v.dtype), v)
        m_i = m_ij
        lse_i = m_ij + tl.log(tl.exp(lse_i - m_ij) + l_ij)
    acc_o = acc_o * tl.exp(m_i - lse_i)[:, None]
    tl.store(Lse + off_hb * seqlen_q_rounded + offs_m, lse_i)
    out_ptrs = Out + off_b * stride_ob + off_h * stride_oh + (offs_m[:, None] * stride_om + offs_d[None, :])
    tl.store(out_ptrs, acc_o, mask=offs_m[:, None] < seqlen_q)


@triton.jit
def _bwd_preprocess_do_o_dot(Out, DO, Delta, stride_b, stride_h, stride_m, nheads, seqlen_q, seqlen_q_rounded, BLOCK_M: tl.constexpr, D: tl.constexpr):
    start_m = tl.program_id(0)
    off_hb = tl.program_id(1)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    at = off_hb // nheads * stride_b + off_hb % nheads * stride_h + offs_m[:, None] * stride_m + tl.arange(0, D)[None, :]
    o = tl.load(Out + at, mask=offs_m[:, None] < seqlen_q, other=0.0).to(tl.float32)
    do = tl.load(DO + at, mask=offs_m[:, None] < seqlen_q, other=0.0).to(tl.float32)
    tl.store(Delta + off_hb * seqlen_q_rounded + offs_m, tl.sum(o * do, axis=1))


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "SEQUENCE_PARALLEL": False}, num_warps=4, num_stages=1, pre_hook=init_to_zero("DQ")),
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "SEQUENCE_PARALLEL": True}, num_warps=4, num_stages=1, pre_hook=init_to_zero("DQ")),
    ],
    key=["CACHE_KEY_SEQLEN_Q", "IS_CAUSAL", "D"],
)
@triton.jit
def _bwd_kernel(
    Q, K, V, DO, DQ, DK, DV, LSE, DELTA, softmax_scale, stride_b, stride_h, stride_m, nheads,
    seqlen_q, seqlen_k, seqlen_q_rounded, CACHE_KEY_SEQLEN_Q,
    IS_CAUSAL: tl.constexpr, D: tl.constexpr, SEQUENCE_PARALLEL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    off_hb = tl.program_id(1)
    base = off_hb // nheads * stride_b + off_hb % nheads * stride_h
    offs_d = tl.arange(0, D)
    if SEQUENCE_PARALLEL:
        first_block = tl.program_id(0)
        last_block = first_block + 1
    else:
        first_block = 0
        last_block = tl.cdiv(seqlen_k, BLOCK_N)
    for block in range(first_block, last_block):
        offs_n = block * BLOCK_N + tl.arange(0, BLOCK_N)
        kv = base + offs_n[:, None] * stride_m + offs_d[None, :]
        k = tl.load(K + kv, mask=offs_n[:, None] < seqlen_k, other=0.0)
        v = tl.load(V + kv, mask=offs_n[:, None] < seqlen_k, other=0.0)
        dk = tl.zeros([BLOCK_N, D], dtype=tl.float32)
        dv = tl.zeros([BLOCK_N, D], dtype=tl.float32)
        begin_m = 0 if not IS_CAUSAL else block * BLOCK_N // BLOCK_M * BLOCK_M
        for start_m in range(begin_m, seqlen_q, BLOCK_M):
            offs_m = start_m + tl.arange(0, BLOCK_M)
            at = base + offs_m[:, None] * stride_m + offs_d[None, :]
            q = tl.load(Q + at, mask=offs_m[:, None] < seqlen_q, other=0.0)
            do = tl.load(DO + at, mask=offs_m[:, None] < seqlen_q, other=0.0)
            qk = tl.dot(q, tl.trans(k))
            if IS_CAUSAL:
                qk = tl.where(offs_m[:, None] >= offs_n[None, :], qk, float("-inf"))
            p = tl.exp(qk * softmax_scale - tl.load(LSE + off_hb * seqlen_q_rounded + offs_m)[:, None])
            dv += tl.dot(tl.trans(p.to(do.dtype)), do)
            dp = tl.dot(do, tl.trans(v))
            delta = tl.load(DELTA + off_hb * seqlen_q_rounded + offs_m)
            ds = (p * (dp - delta[:, None]) * softmax_scale).to(q.dtype)
            dk += tl.dot(tl.trans(ds), q)
            dq = tl.dot(ds, k)
            if SEQUENCE_PARALLEL:
                tl.atomic_add(DQ + at, dq, mask=offs_m[:, None] < seqlen_q)
            else:
                dq += tl.load(DQ + at, mask=offs_m[:, None] < seqlen_q, other=0.0, eviction_policy="evict_last")
                tl.store(DQ + at, dq, mask=offs_m[:, None] < seqlen_q, eviction_policy="evict_last")
        tl.store(DK + kv, dk, mask=offs_n[:, None] < seqlen_k)
        tl.store(DV + kv, dv, mask=offs_n[:, None] < seqlen_k)


class FlashAttnFunc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, bias=None, causal=False, softmax_scale=None):
        batch, seqlen_q, nheads, d = q.shape
        seqlen_k = k.shape[1]
        assert d <= 128, "FlashAttention only support head dimensions up to 128"
        assert q.dtype in [torch.float16, torch.bfloat16], "Only support fp16 and bf16"
        assert q.is_cuda and k.is_cuda and v.is_cuda
        softmax_scale = softmax_scale or 1.0 / math.sqrt(d)
        bias_type, bias_strides = "none", (0, 0, 0)
        if bias is not None:
            assert bias.dtype in [q.dtype, torch.float]
            bias = bias.contiguous() if bias.stride(-1) != 1 else bias
            bias_type = "vector" if bias.shape[2:] == (1, seqlen_k) else "matrix"
            bias = bias.expand(batch, nheads, bias.shape[2], seqlen_k)
            bias_strides = bias.stride()[:3]
        rounded = math.ceil(seqlen_q / 64) * 64
        lse = torch.empty((batch, nheads, rounded), device=q.device, dtype=torch.float32)
        o = torch.empty_like(q)
        grid = lambda META: (triton.cdiv(seqlen_q, META["BLOCK_M"]), batch * nheads)
        _fwd_kernel[grid](
            q, k, v, bias, o, lse, softmax_scale,
            q.stride(0), q.stride(2), q.stride(1), k.stride(0), k.stride(2), k.stride(1),
            v.stride(0), v.stride(2), v.stride(1), *bias_strides, o.stride(0), o.stride(2), o.stride(1),
            nheads, seqlen_q, seqlen_k, rounded, seqlen_q // 32, bias_type, causal, max(triton.next_power_of_2(d), 16),
            BLOCK_M=64, BLOCK_N=32, num_warps=4, num_stages=1,
        )
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.scale, ctx.causal = softmax_scale, causal
        return o

    @staticmethod
    def backward(ctx, do):
        q, k, v, o, lse = ctx.saved_tensors
        do = do.contiguous()
        batch, seqlen_q, nheads, d = q.shape
        dq = torch.empty_like(q, dtype=torch.float32)
        dk, dv = torch.empty_like(k), torch.empty_like(v)
        delta = torch.empty_like(lse)
        rounded = lse.shape[-1]
        strides = (q.stride(0), q.stride(2), q.stride(1))
        _bwd_preprocess_do_o_dot[(rounded // 64, batch * nheads)](o, do, delta, *strides, nheads, seqlen_q, rounded, BLOCK_M=64, D=d)
        grid = lambda META: (triton.cdiv(k.shape[1], META["BLOCK_N"]) if META["SEQUENCE_PARALLEL"] else 1, batch * nheads)
        _bwd_kernel[grid](
            q, k, v, do, dq, dk, dv, lse, delta, ctx.scale, *strides, nheads, seqlen_q, k.shape[1], rounded, seqlen_q // 32,
            IS_CAUSAL=ctx.causal, D=d,
        )
        return dq.to(q.dtype), dk, dv, None, None, None


flash_attn = FlashAttnFunc.apply

if __name__ == "__main__":
    q, k, v = (torch.randn(1, 100, 2, 32, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3))
    flash_attn(q, k, v, None, True).sum().backward()
    with torch.no_grad():
        even = torch.randn(1, 128, 2, 32, device="cuda", dtype=torch.bfloat16)
        flash_attn(even, even, even)
        flash_attn(even, even, even, torch.randn(1, 2, 1, 128, device="cuda"))
        flash_attn(even, even, even, torch.randn(1, 1, 128, 128, device="cuda", dtype=torch.bfloat16))
