"""Decode over a paged cache, split along the keys and reduced; writing, copying and fp8 quantizing of cache blocks."""

import torch
import triton
import triton.language as tl

MIN_BLOCK_KV = 32


@triton.jit
def decode_stage1_kernel(
    Q, K_Buffer, V_Buffer, sm_scale, Req_to_tokens, B_Seqlen, Att_Out, k_scale,
    stride_req, stride_qbs, stride_qh, stride_buf_kbs, stride_buf_kh, stride_buf_vbs, stride_buf_vh,
    stride_mid_ob, stride_mid_oh, stride_mid_os,
    kv_group_num: tl.constexpr, q_head_num: tl.constexpr, BLOCK_DMODEL: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_H: tl.constexpr, NUM_KV_SPLITS: tl.constexpr, PAGE_SIZE: tl.constexpr, logit_cap: tl.constexpr,
):
    cur_batch = tl.program_id(0)
    cur_head_id = tl.program_id(1)
    split_kv_id = tl.program_id(2)
    cur_kv_head = cur_head_id // tl.cdiv(kv_group_num, BLOCK_H)
    VALID_BLOCK_H: tl.constexpr = BLOCK_H if kv_group_num > BLOCK_H else kv_group_num
    cur_head = cur_head_id * VALID_BLOCK_H + tl.arange(0, BLOCK_H)
    mask_h = (cur_head < (cur_head_id + 1) * VALID_BLOCK_H) & (cur_head < q_head_num)
    offs_d = tl.arange(0, BLOCK_DMODEL)
    seq_len = tl.load(B_Seqlen + cur_batch)
    q = tl.load(Q + cur_batch * stride_qbs + cur_head[:, None] * stride_qh + offs_d[None, :], mask=mask_h[:, None], other=0.0)
    per_split = tl.cdiv(seq_len, NUM_KV_SPLITS)
    split_start = per_split * split_kv_id
    split_end = tl.minimum(split_start + per_split, seq_len)
    e_max = tl.zeros([BLOCK_H], dtype=tl.float32) - float("inf")
    e_sum = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_DMODEL], dtype=tl.float32)
    if split_end > split_start:
        for start_n in range(split_start, split_end, BLOCK_N):
            offs_n = start_n + tl.arange(0, BLOCK_N)
            page = tl.load(Req_to_tokens + stride_req * cur_batch + offs_n // PAGE_SIZE, mask=offs_n < split_end, other=0)
            kv_loc = page * PAGE_SIZE + offs_n % PAGE_SIZE
            k = tl.load(
                K_Buffer + kv_loc[None, :] * stride_buf_kbs + cur_kv_head * stride_buf_kh + offs_d[:, None],
                mask=offs_n[None, :] < split_end, other=0.0,
            )
            qk = tl.dot(q, k.to(q.dtype)) * sm_scale
            if k_scale is not None:
                qk *= tl.load(k_scale)
            if logit_cap > 0:
                qk = logit_cap * (2 * tl.sigmoid(2 * qk / logit_cap) - 1)
            qk = tl.where(mask_h[:, None] & (offs_n[None, :] < split_end), qk, float("-inf"))
            v = tl.load(
                V_Buffer + kv_loc[:, None] * stride_buf_vbs + cur_kv_head * stride_buf_vh + offs_d[None, :],
                mask=offs_n[:, None] < split_end, other=0.0,
            )
            n_e_max = tl.maximum(tl.max(qk, 1), e_max)
            re_scale = tl.exp(e_max - n_e_max)
            p = tl.exp(qk - n_e_max[:, None])
            acc *= re_scale[:, None]
            acc += tl.dot(p.to(q.dtype), v.to(q.dtype))
            e_sum = e_sum * re_scale + tl.sum(p, 1)
            e_max = n_e_max
        mid = cur_batch * stride_mid_ob + cur_head * stride_mid_oh + split_kv_id * stride_mid_os
        tl.store(Att_Out + mid[:, None] + offs_d[None, :], acc / e_sum[:, None], mask=mask_h[:, None])
        tl.store(Att_Out + mid + BLOCK_DMODEL, e_max + tl.log(e_sum), mask=mask_h)


@triton.jit
def decode_stage2_kernel(
    Mid_O, o, B_Seqlen, stride_mid_ob, stride_mid_oh, stride_mid_os, stride_obs, stride_oh,
    NUM_KV_SPLITS: tl.constexpr, BLOCK_DV: tl.constexpr, Lv: tl.constexpr,
):
    cur_batch = tl.program_id(0)
    cur_head = tl.program_id(1)
    seq_len = tl.load(B_Seqlen + cur_batch)
    offs_d = tl.arange(0, BLOCK_DV)
    mask_d = offs_d < Lv
    e_sum = 0.0
    e_max = -float("inf")
    acc = tl.zeros([BLOCK_DV], dtype=tl.float32)
    base = Mid_O + cur_batch * stride_mid_ob + cur_head * stride_mid_oh
    for split in range(0, NUM_KV_SPLITS):
        per_split = tl.cdiv(seq_len, NUM_KV_SPLITS)
        if tl.minimum(per_split * (split + 1), seq_len) > per_split * split:
            tv = tl.load(base + offs_d + split * stride_mid_os, mask=mask_d, other=0.0)
            tlogic = tl.load(base + Lv + split * stride_mid_os)
            n_e_max = tl.maximum(tlogic, e_max)
            old_scale = tl.exp(e_max - n_e_max)
            exp_logic = tl.exp(tlogic - n_e_max)
            acc = acc * old_scale + exp_logic * tv
            e_sum = e_sum * old_scale + exp_logic
            e_max = n_e_max
    tl.store(o + cur_batch * stride_obs + cur_head * stride_oh + offs_d, acc / e_sum, mask=mask_d)


@triton.jit
def reshape_and_cache_kernel(
    key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slot_mapping_ptr, k_scale, v_scale,
    key_stride: tl.int64, value_stride: tl.int64, block_stride: tl.int64, page_stride: tl.int64,
    num_heads: tl.constexpr, head_size: tl.constexpr, block_size: tl.constexpr, FP8: tl.constexpr, TILE: tl.constexpr,
):
    token = tl.program_id(0)
    tile = tl.program_id(1)
    at = tile * TILE + tl.arange(0, TILE)
    slot = tl.load(slot_mapping_ptr + token).to(tl.int64)
    if slot < 0:
        return
    target = slot // block_size * block_stride + slot % block_size * page_stride + at
    mask = at < num_heads * head_size
    key = tl.load(key_ptr + token * key_stride + at, mask=mask)
    value = tl.load(value_ptr + token * value_stride + at, mask=mask)
    if FP8:
        key = (key / tl.load(k_scale)).to(key_cache_ptr.dtype.element_ty)
        value = (value / tl.load(v_scale)).to(value_cache_ptr.dtype.element_ty)
    tl.store(key_cache_ptr + target, key, mask=mask)
    tl.store(value_cache_ptr + target, value, mask=mask)


@triton.jit
def copy_blocks_kernel(key_cache, value_cache, mapping, numel_per_block, BLOCK: tl.constexpr):
    pair = tl.program_id(0)
    source = tl.load(mapping + 2 * pair) * numel_per_block
    target = tl.load(mapping + 2 * pair + 1) * numel_per_block
    for start in range(0, numel_per_block, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < numel_per_block
        tl.store(key_cache + target + at, tl.load(key_cache + source + at, mask=mask), mask=mask)
        tl.store(value_cache + target + at, tl.load(value_cache + source + at, mask=mask), mask=mask)


def decode_attention(q, k_cache, v_cache, table, lengths, splits=4, k_scale=None, cap=0.0):
    batch, heads, d = q.shape
    _, page, kv_heads, _ = k_cache.shape
    group = heads // kv_heads
    mid = torch.empty(batch, heads, splits, d + 1, device=q.device, dtype=torch.float32)
    out = torch.empty_like(q)
    block_h = 16
    grid = (batch, triton.cdiv(heads, min(block_h, group)), splits)
    decode_stage1_kernel[grid](
        q, k_cache, v_cache, d**-0.5, table, lengths, mid, k_scale, table.stride(0), q.stride(0), q.stride(1),
        k_cache.stride(-3), k_cache.stride(-2), v_cache.stride(-3), v_cache.stride(-2),
        mid.stride(0), mid.stride(1), mid.stride(2), kv_group_num=group, q_head_num=heads, BLOCK_DMODEL=d,
        BLOCK_N=MIN_BLOCK_KV, BLOCK_H=block_h, NUM_KV_SPLITS=splits, PAGE_SIZE=page, logit_cap=cap, num_warps=4, num_stages=2,
    )
    decode_stage2_kernel[(batch, heads)](
        mid, out, lengths, mid.stride(0), mid.stride(1), mid.stride(2), out.stride(0), out.stride(1),
        NUM_KV_SPLITS=splits, BLOCK_DV=triton.next_power_of_2(d), Lv=d, num_warps=4, num_stages=2,
    )
    return out


def write_to_cache(key, value, key_cache, value_cache, slots, scale=None):
    tokens, heads, d = key.shape
    page = key_cache.shape[1]
    reshape_and_cache_kernel[lambda meta: (tokens, triton.cdiv(heads * d, meta["TILE"]))](
        key, value, key_cache, value_cache, slots, scale, scale, key.stride(0), value.stride(0),
        key_cache.stride(0), key_cache.stride(1), num_heads=heads, head_size=d, block_size=page,
        FP8=scale is not None, TILE=min(512, triton.next_power_of_2(heads * d)),
    )


if __name__ == "__main__":
    caches = torch.randn(2, 16, 16, 2, 64, device="cuda", dtype=torch.float16)
    table = torch.arange(12, device="cuda", dtype=torch.int32).view(3, 4)
    lengths = torch.tensor([5, 33, 64], device="cuda", dtype=torch.int32)
    q = torch.randn(3, 8, 64, device="cuda", dtype=torch.float16)
    decode_attention(q, caches[0], caches[1], table, lengths)
    decode_attention(q, caches[0], caches[1], table, lengths, k_scale=torch.ones(1, device="cuda"), cap=30.0)
    key, value = torch.randn(2, 3, 2, 64, device="cuda", dtype=torch.float16)
    slots = torch.tensor([0, 40, -1], device="cuda")
    write_to_cache(key, value, caches[0], caches[1], slots)
    fp8 = torch.empty(2, 16, 16, 2, 64, device="cuda", dtype=torch.float8_e4m3fn)
    write_to_cache(key, value, fp8[0], fp8[1], slots, scale=torch.ones(1, device="cuda"))
    copy_blocks_kernel[(2,)](caches[0], caches[1], torch.tensor([[0, 1], [2, 3]], device="cuda"), 16 * 2 * 64, BLOCK=512)
