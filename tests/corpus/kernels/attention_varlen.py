"""Packed sequences with grouped queries, sliding windows, alibi and logit softcap; a persistent decode over a batch."""

import torch
import triton
import triton.language as tl


@triton.jit
def soft_cap(scores, cap):
    e = tl.exp(2 * scores / cap)
    return cap * (e - 1) / (e + 1)


@triton.jit
def load_rows(ptr, rows, cols, stride, limit, D: tl.constexpr, PADDED: tl.constexpr):
    if D == PADDED:
        return tl.load(ptr + rows[:, None] * stride + cols[None, :], mask=rows[:, None] < limit, other=0.0)
    return tl.load(ptr + rows[:, None] * stride + cols[None, :], mask=(rows[:, None] < limit) & (cols[None, :] < D), other=0.0)


@triton.jit
def context_attention_kernel(
    Q, K, V, Out, scale, cu_seqlens_q, cu_seqlens_k, alibi_slopes, sinks,
    stride_qt, stride_qh, stride_kt, stride_kh, stride_ot, stride_oh, softcap,
    GROUP: tl.constexpr, D: tl.constexpr, D_PADDED: tl.constexpr, WINDOW: tl.constexpr,
    USE_ALIBI: tl.constexpr, CAP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    batch, head = tl.program_id(0), tl.program_id(1)
    first_m = tl.program_id(2) * BLOCK_M
    q_start = tl.load(cu_seqlens_q + batch)
    q_len = tl.load(cu_seqlens_q + batch + 1) - q_start
    k_start = tl.load(cu_seqlens_k + batch)
    k_len = tl.load(cu_seqlens_k + batch + 1) - k_start
    if first_m >= q_len:
        return
    offs_m = first_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D_PADDED)
    Q += q_start.to(tl.int64) * stride_qt + head * stride_qh
    K += k_start.to(tl.int64) * stride_kt + head // GROUP * stride_kh
    V += k_start.to(tl.int64) * stride_kt + head // GROUP * stride_kh
    q = load_rows(Q, offs_m, offs_d, stride_qt, q_len, D, D_PADDED)
    shift = k_len - q_len
    if sinks is not None:
        m = tl.zeros([BLOCK_M], tl.float32) + tl.load(sinks + head).to(tl.float32)
        l = tl.full([BLOCK_M], 1.0, tl.float32)
    else:
        m = tl.full([BLOCK_M], -float("inf"), tl.float32)
        l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D_PADDED], tl.float32)
    if USE_ALIBI:
        slope = tl.load(alibi_slopes + head)
    end = tl.minimum(first_m + BLOCK_M + shift, k_len)
    begin = 0
    if WINDOW > 0:
        begin = tl.maximum(0, first_m + shift - WINDOW + 1) // BLOCK_N * BLOCK_N
    for start in range(begin, end, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        k = load_rows(K, offs_n, offs_d, stride_kt, k_len, D, D_PADDED)
        scores = tl.dot(q, k.T, input_precision="ieee") * scale
        if CAP:
            scores = soft_cap(scores, softcap)
        distance = offs_m[:, None] + shift - offs_n[None, :]
        if USE_ALIBI:
            scores -= slope * distance
        visible = (distance >= 0) & (offs_n[None, :] < k_len)
        if WINDOW > 0:
            visible = visible & (distance < WINDOW)
        scores = tl.where(visible, scores, -1.0e30)
        new = tl.maximum(m, tl.max(scores, 1))
        p = tl.where(visible, tl.exp(scores - new[:, None]), 0.0)
        rescale = tl.exp(m - new)
        l = l * rescale + tl.sum(p, 1)
        v = load_rows(V, offs_n, offs_d, stride_kt, k_len, D, D_PADDED)
        acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None])
        m = new
    acc = acc / l[:, None]
    out = Out + (q_start + offs_m).to(tl.int64)[:, None] * stride_ot + head * stride_oh + offs_d[None, :]
    tl.store(out, acc.to(Out.dtype.element_ty), mask=(offs_m[:, None] < q_len) & (offs_d[None, :] < D))


@triton.jit(do_not_specialize=["n_tasks"], do_not_specialize_on_alignment=["kv_len"])
def persistent_decode_kernel(
    Q, K, V, Out, Counter, n_tasks, kv_len, scale, H: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Vector times matrix by sums, for a single query, tasks taken from a counter."""
    task = tl.atomic_add(Counter, 1)
    offs_d = tl.arange(0, D)
    while task < n_tasks:
        q = tl.load(Q + task * D + offs_d).to(tl.float32) * scale
        m = -float("inf")
        l = 0.0
        acc = tl.zeros([D], tl.float32)
        for start in range(0, kv_len, BLOCK_N):
            offs_n = start + tl.arange(0, BLOCK_N)
            at = (task // H * kv_len + offs_n)[:, None] * D + offs_d[None, :]
            k = tl.load(K + at, mask=offs_n[:, None] < kv_len, other=0.0).to(tl.float32)
            scores = tl.where(offs_n < kv_len, tl.sum(k * q[None, :], 1), -float("inf"))
            new = tl.maximum(m, tl.max(scores, 0))
            p = tl.exp(scores - new)
            v = tl.load(V + at, mask=offs_n[:, None] < kv_len, other=0.0).to(tl.float32)
            acc = acc * tl.exp(m - new) + tl.sum(p[:, None] * v, 0)
            l = l * tl.exp(m - new) + tl.sum(p, 0)
            m = new
        tl.store(Out + task * D + offs_d, acc / l)
        task = tl.atomic_add(Counter, 1)


@triton.jit
def merge_attn_states_kernel(
    output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, HEAD: tl.constexpr, PADDED: tl.constexpr,
    OUTPUT_LSE: tl.constexpr,
):
    token, tokens = tl.program_id(0), tl.num_programs(0)
    head, heads = tl.program_id(1), tl.num_programs(1)
    p_lse = tl.load(prefix_lse + head * tokens + token)
    s_lse = tl.load(suffix_lse + head * tokens + token)
    p_lse = float("-inf") if p_lse == float("inf") else p_lse
    s_lse = float("-inf") if s_lse == float("inf") else s_lse
    most = tl.maximum(p_lse, s_lse)
    p_se = tl.exp(p_lse - most)
    s_se = tl.exp(s_lse - most)
    if OUTPUT_LSE:
        tl.store(output_lse + head * tokens + token, tl.log(p_se + s_se) + most)
    at = tl.arange(0, PADDED)
    base = (token * heads + head) * HEAD + at
    p = tl.load(prefix_output + base, mask=at < HEAD)
    s = tl.load(suffix_output + base, mask=at < HEAD)
    out = p * (p_se / (p_se + s_se)) + s * (s_se / (p_se + s_se))
    tl.store(output + base, out, mask=at < HEAD)


def context_attention(q, k, v, cu_q, cu_k, max_q, window=0, alibi=None, softcap=0.0, sinks=None):
    heads, d = q.shape[1:]
    out = torch.empty_like(q)
    grid = (cu_q.numel() - 1, heads, triton.cdiv(max_q, 32))
    context_attention_kernel[grid](
        q, k, v, out, d**-0.5, cu_q, cu_k, alibi, sinks, q.stride(0), q.stride(1), k.stride(0), k.stride(1),
        out.stride(0), out.stride(1), softcap, GROUP=heads // k.shape[1], D=d, D_PADDED=triton.next_power_of_2(d),
        WINDOW=window, USE_ALIBI=alibi is not None, CAP=softcap > 0, BLOCK_M=32, BLOCK_N=32,
    )
    return out


if __name__ == "__main__":
    cu = torch.tensor([0, 17, 60, 96], device="cuda", dtype=torch.int32)
    q = torch.randn(96, 8, 80, device="cuda", dtype=torch.bfloat16)
    k, v = torch.randn(2, 96, 2, 80, device="cuda", dtype=torch.bfloat16)
    context_attention(q, k, v, cu, cu, 43)
    context_attention(q, k, v, cu, cu, 43, window=16, softcap=50.0)
    slopes = torch.tensor([2.0 ** -(i + 1) for i in range(8)], device="cuda")
    full = torch.randn(96, 8, 64, device="cuda", dtype=torch.float16)
    context_attention(full, full, full, cu, cu, 43, alibi=slopes, sinks=slopes.half())
    out = torch.empty(16, 64, device="cuda", dtype=torch.half)
    kv = torch.randn(4, 100, 64, device="cuda", dtype=torch.half)
    persistent_decode_kernel[(4,)](out, kv, kv, out, torch.zeros(1, device="cuda", dtype=torch.int32), 16, 100, 0.125, H=4, D=64, BLOCK_N=32)
    lse = torch.randn(4, 32, device="cuda")
    parts = torch.randn(32, 4, 96, device="cuda", dtype=torch.bfloat16)
    merge_attn_states_kernel[(32, 4)](parts, None, parts, lse, parts, lse, 96, 128, OUTPUT_LSE=False)
    merge_attn_states_kernel[(32, 4)](parts, lse, parts, lse, parts, lse, 96, 128, OUTPUT_LSE=True)
