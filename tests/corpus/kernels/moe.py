"""Mixture of experts: choosing, aligning tokens to blocks in four stages, one fused matmul for all experts, adding up."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from typing import Any, Dict


@triton.jit
def topk_softmax_kernel(
    gating_ptr, weights_ptr, ids_ptr, bias_ptr, num_experts, scale,
    TOPK: tl.constexpr, BLOCK_E: tl.constexpr, SCORING: tl.constexpr, RENORMALIZE: tl.constexpr, BLOCK_K: tl.constexpr,
):
    token = tl.program_id(0)
    e = tl.arange(0, BLOCK_E)
    mask = e < num_experts
    logits = tl.load(gating_ptr + token * num_experts + e, mask=mask, other=-float("inf")).to(tl.float32)
    if SCORING == "softmax":
        scores = tl.softmax(logits)
    else:
        scores = tl.sigmoid(logits)
    ranked = scores
    if bias_ptr is not None:
        ranked += tl.load(bias_ptr + e, mask=mask, other=-float("inf"))
    ranked = tl.where(mask, ranked, -float("inf"))
    k = tl.arange(0, BLOCK_K)
    chosen = tl.zeros((BLOCK_K,), tl.int32)
    weights = tl.zeros((BLOCK_K,), tl.float32)
    for i in tl.static_range(TOPK):
        _, best = tl.max(ranked, axis=0, return_indices=True)
        chosen = tl.where(k == i, best, chosen)
        weights = tl.where(k == i, tl.sum(tl.where(e == best, scores, 0.0)), weights)
        ranked = tl.where(e == best, -float("inf"), ranked)
    if RENORMALIZE:
        weights = weights / tl.sum(weights)
    tl.store(weights_ptr + token * TOPK + k, weights * scale, mask=k < TOPK)
    tl.store(ids_ptr + token * TOPK + k, chosen, mask=k < TOPK)


@triton.jit
def align_stage1(topk_ids_ptr, tokens_cnts_ptr, num_experts: tl.constexpr, numel: tl.constexpr, tokens_per_thread: tl.constexpr):
    pid = tl.program_id(0)
    start = pid * tokens_per_thread
    off_c = (pid + 1) * num_experts
    for i in range(tokens_per_thread):
        if start + i < numel:
            idx = tl.load(topk_ids_ptr + start + i)
            count = tl.load(tokens_cnts_ptr + off_c + idx)
            tl.store(tokens_cnts_ptr + off_c + idx, count + 1)


@triton.jit
def align_stage2(tokens_cnts_ptr, num_experts: tl.constexpr):
    pid = tl.program_id(0)
    last = 0
    for i in range(1, num_experts + 1):
        last = last + tl.load(tokens_cnts_ptr + i * num_experts + pid)
        tl.store(tokens_cnts_ptr + i * num_experts + pid, last)


@triton.jit
def align_stage3(total_ptr, tokens_cnts_ptr, cumsum_ptr, num_experts: tl.constexpr, block_size: tl.constexpr):
    last = 0
    off = num_experts * num_experts
    for i in range(1, num_experts + 1):
        last = last + tl.cdiv(tl.load(tokens_cnts_ptr + off + i - 1), block_size) * block_size
        tl.store(cumsum_ptr + i, last)
    tl.store(total_ptr, last)


@triton.jit
def align_stage4(
    topk_ids_ptr, sorted_ptr, expert_ids_ptr, tokens_cnts_ptr, cumsum_ptr,
    num_experts: tl.constexpr, block_size: tl.constexpr, numel: tl.constexpr, tokens_per_thread: tl.constexpr,
):
    pid = tl.program_id(0)
    start = tl.load(cumsum_ptr + pid)
    end = tl.load(cumsum_ptr + pid + 1)
    for i in range(start, end, block_size):
        tl.store(expert_ids_ptr + i // block_size, pid)
    first = pid * tokens_per_thread
    off = pid * num_experts
    for i in range(first, tl.minimum(first + tokens_per_thread, numel)):
        expert = tl.load(topk_ids_ptr + i)
        count = tl.load(tokens_cnts_ptr + off + expert)
        tl.store(sorted_ptr + count + tl.load(cumsum_ptr + expert), i)
        tl.store(tokens_cnts_ptr + off + expert, count + 1)


@triton.jit
def write_zeros_to_output(c_ptr, stride_cm, stride_cn, pid_n, N, offs_token, token_mask, BLOCK_M, BLOCK_N, compute_type):
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=compute_type)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_token[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, accumulator, mask=token_mask[:, None] & (offs_cn[None, :] < N))


@triton.jit
def fused_moe_kernel(
    a_ptr, b_ptr, c_ptr, b_bias_ptr, a_scale_ptr, b_scale_ptr, topk_weights_ptr, sorted_token_ids_ptr, expert_ids_ptr,
    num_tokens_post_padded_ptr, N, K, EM, num_valid_tokens,
    stride_am, stride_ak, stride_be, stride_bk, stride_bn, stride_cm, stride_cn, stride_bse, stride_bbe,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
    MUL_ROUTED_WEIGHT: tl.constexpr, top_k: tl.constexpr, compute_type: tl.constexpr,
    use_int8_w8a16: tl.constexpr, use_fp8_w8a8: tl.constexpr, HAS_BIAS: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(EM, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    first_pid_m = pid // num_pid_in_group * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    num_tokens_post_padded = tl.load(num_tokens_post_padded_ptr)
    if pid_m * BLOCK_SIZE_M >= num_tokens_post_padded:
        return
    offs_token_id = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M).to(tl.int64)
    offs_token = tl.load(sorted_token_ids_ptr + offs_token_id)
    token_mask = offs_token < num_valid_tokens
    off_experts = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    if off_experts == -1:
        write_zeros_to_output(c_ptr, stride_cm, stride_cn, pid_n, N, offs_token, token_mask, BLOCK_SIZE_M, BLOCK_SIZE_N, compute_type)
        return
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N).to(tl.int64)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_token[:, None] // top_k * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + off_experts * stride_be + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    if use_int8_w8a16:
        b_scale = tl.load(b_scale_ptr + off_experts * stride_bse + offs_bn[None, :])
    if use_fp8_w8a8:
        a_scale = tl.load(a_scale_ptr)
        b_scale = tl.load(b_scale_ptr + off_experts)
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=token_mask[:, None] & (offs_k[None, :] < K - k * BLOCK_SIZE_K), other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        if use_int8_w8a16:
            accumulator = tl.dot(a, b.to(compute_type), acc=accumulator)
        elif use_fp8_w8a8:
            accumulator = tl.dot(a, b, acc=accumulator)
        else:
            accumulator += tl.dot(a, b)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if use_int8_w8a16:
        accumulator = accumulator * b_scale
    elif use_fp8_w8a8:
        accumulator = accumulator * a_scale * b_scale
    if HAS_BIAS:
        accumulator += tl.load(b_bias_ptr + off_experts * stride_bbe + offs_bn)[None, :]
    if MUL_ROUTED_WEIGHT:
        moe_weight = tl.load(topk_weights_ptr + offs_token, mask=token_mask, other=0)
        accumulator = accumulator * moe_weight[:, None]
    accumulator = accumulator.to(compute_type)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_token[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, accumulator, mask=token_mask[:, None] & (offs_cn[None, :] < N))


@triton.jit
def moe_sum_kernel(x_ptr, out_ptr, D, TOPK: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(TOPK):
        total += tl.load(x_ptr + (token * TOPK + i) * D + cols, mask=cols < D, other=0.0)
    tl.store(out_ptr + token * D + cols, total, mask=cols < D)


def moe_align_block_size(topk_ids: Tensor, block_size: int, num_experts: int):
    max_padded = topk_ids.numel() + num_experts * (block_size - 1)
    sorted_ids = torch.empty((max_padded,), dtype=torch.int32, device=topk_ids.device)
    sorted_ids.fill_(topk_ids.numel())
    expert_ids = torch.empty((triton.cdiv(max_padded, block_size),), dtype=torch.int32, device=topk_ids.device)
    total = torch.empty((1), dtype=torch.int32, device=topk_ids.device)
    counts = torch.zeros((num_experts + 1, num_experts), dtype=torch.int32, device=topk_ids.device)
    cumsum = torch.zeros((num_experts + 1,), dtype=torch.int32, device=topk_ids.device)
    numel, grid = topk_ids.numel(), (num_experts,)
    per_thread = triton.cdiv(numel, num_experts)
    align_stage1[grid](topk_ids, counts, num_experts, numel, per_thread)
    align_stage2[grid](counts, num_experts)
    align_stage3[(1,)](total, counts, cumsum, num_experts, block_size)
    align_stage4[grid](topk_ids, sorted_ids, expert_ids, counts, cumsum, num_experts, block_size, numel, per_thread)
    return sorted_ids, expert_ids, total


def invoke_fused_moe_kernel(A, B, C, A_scale, B_scale, weights, ids, aligned, mul, top_k, config: Dict[str, Any], **flags):
    sorted_ids, expert_ids, total = aligned
    EM = sorted_ids.shape[0]
    grid = lambda META: (triton.cdiv(EM, META["BLOCK_SIZE_M"]) * triton.cdiv(B.shape[1], META["BLOCK_SIZE_N"]),)
    bias = flags.pop("bias", None)
    compute_type = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}[C.dtype]
    fused_moe_kernel[grid](
        A, B, C, bias, A_scale, B_scale, weights, sorted_ids, expert_ids, total, B.shape[1], A.shape[1], EM, ids.numel(),
        A.stride(0), A.stride(1), B.stride(0), B.stride(2), B.stride(1), C.stride(1), C.stride(2),
        B_scale.stride(0) if B_scale is not None and B_scale.ndim == 2 else 0, bias.stride(0) if bias is not None else 0,
        MUL_ROUTED_WEIGHT=mul, top_k=top_k, compute_type=compute_type, HAS_BIAS=bias is not None,
        use_int8_w8a16=flags.get("int8", False), use_fp8_w8a8=flags.get("fp8", False), **config,
    )


if __name__ == "__main__":
    tokens, experts, topk, hidden = 20, 8, 2, 64
    gating = torch.randn(tokens, experts, device="cuda", dtype=torch.bfloat16)
    weights = torch.empty(tokens, topk, device="cuda")
    ids = torch.empty(tokens, topk, device="cuda", dtype=torch.int32)
    for scoring, bias in (("softmax", None), ("sigmoid", torch.zeros(experts, device="cuda"))):
        topk_softmax_kernel[(tokens,)](gating, weights, ids, bias, experts, 2.5, TOPK=topk, BLOCK_E=8, SCORING=scoring, RENORMALIZE=True, BLOCK_K=2)
    ids = torch.randint(0, experts, (tokens, topk), device="cuda", dtype=torch.int32)
    aligned = moe_align_block_size(ids, 16, experts)
    config = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 4}
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(experts, 96, hidden, device="cuda", dtype=torch.bfloat16)
    out = torch.empty(tokens, topk, 96, device="cuda", dtype=torch.bfloat16)
    invoke_fused_moe_kernel(x, w, out, None, None, weights, ids, aligned, False, topk, config)
    invoke_fused_moe_kernel(x, w, out, None, None, weights, ids, aligned, True, 1, config, bias=torch.zeros(experts, 96, device="cuda"))
    w8 = torch.zeros(experts, 96, hidden, device="cuda", dtype=torch.int8)
    invoke_fused_moe_kernel(x, w8, out, None, torch.ones(experts, 96, device="cuda"), weights, ids, aligned, False, topk, config, int8=True)
    x8, w8 = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
    invoke_fused_moe_kernel(x8, w8, out, torch.ones(1, device="cuda"), torch.ones(experts, device="cuda"), weights, ids, aligned, True, topk, config, fp8=True)
    moe_sum_kernel[(tokens, 1)](out, torch.empty(tokens, 96, device="cuda", dtype=torch.bfloat16), 96, TOPK=topk, BLOCK=128)
