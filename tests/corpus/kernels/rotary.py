"""Rotary embeddings: halves and pairs, in place, inverse for the backward, packed sequences, cached positions."""

from typing import Optional

import torch
import triton
import triton.language as tl


@triton.jit
def rope_halves_kernel(
    q_ptr, q_row_stride, k_ptr, k_row_stride, cos, cos_row_stride, sin, sin_row_stride, sl,
    n_qh: tl.constexpr, n_kh: tl.constexpr, hd: tl.constexpr, pad_qh: tl.constexpr, pad_kh: tl.constexpr,
    BACKWARD_PASS: tl.constexpr = False,
):
    pid = tl.program_id(0).to(tl.int64)
    q_ptr = q_ptr + pid * q_row_stride
    k_ptr = k_ptr + pid * k_row_stride
    position = pid % sl
    half = tl.arange(0, hd // 2)
    cos_row = tl.load(cos + position * cos_row_stride + half)
    sin_row = tl.load(sin + position * sin_row_stride + half)
    if BACKWARD_PASS:
        sin_row = -sin_row
    q_heads = tl.arange(0, pad_qh)[:, None]
    k_heads = tl.arange(0, pad_kh)[:, None]
    first_q = q_heads * hd + half[None, :]
    first_k = k_heads * hd + half[None, :]
    q_mask = q_heads < n_qh
    k_mask = k_heads < n_kh
    q1 = tl.load(q_ptr + first_q, mask=q_mask, other=0).to(sin_row.dtype)
    q2 = tl.load(q_ptr + first_q + hd // 2, mask=q_mask, other=0).to(sin_row.dtype)
    k1 = tl.load(k_ptr + first_k, mask=k_mask, other=0).to(sin_row.dtype)
    k2 = tl.load(k_ptr + first_k + hd // 2, mask=k_mask, other=0).to(sin_row.dtype)
    tl.store(q_ptr + first_q, q1 * cos_row - q2 * sin_row, mask=q_mask)
    tl.store(q_ptr + first_q + hd // 2, q2 * cos_row + q1 * sin_row, mask=q_mask)
    tl.store(k_ptr + first_k, k1 * cos_row - k2 * sin_row, mask=k_mask)
    tl.store(k_ptr + first_k + hd // 2, k2 * cos_row + k1 * sin_row, mask=k_mask)


@triton.jit
def rotary_varlen_kernel(
    OUT, X, COS, SIN, CU_SEQLENS, SEQLEN_OFFSETS, seqlen, nheads, seqlen_ro,
    stride_out_batch, stride_out_seqlen, stride_out_nheads, stride_out_headdim,
    stride_x_batch, stride_x_seqlen, stride_x_nheads, stride_x_headdim,
    ROTARY_DIM: tl.constexpr, IS_SEQLEN_OFFSETS_TENSOR: tl.constexpr, IS_VARLEN: tl.constexpr,
    INTERLEAVED: tl.constexpr, CONJUGATE: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_M: tl.constexpr,
):
    BLOCK_K: tl.constexpr = triton.next_power_of_2(ROTARY_DIM)
    ROTARY_DIM_HALF = ROTARY_DIM // 2
    pid_head = tl.program_id(axis=0)
    pid_m = tl.program_id(axis=1)
    pid_batch = tl.program_id(axis=2)
    if not IS_VARLEN:
        X = X + pid_batch * stride_x_batch
        OUT = OUT + pid_batch * stride_out_batch
    else:
        start_idx = tl.load(CU_SEQLENS + pid_batch)
        seqlen = tl.load(CU_SEQLENS + pid_batch + 1) - start_idx
        X = X + start_idx * stride_x_seqlen
        OUT = OUT + start_idx * stride_out_seqlen
    if pid_m * BLOCK_M >= seqlen:
        return
    rh = pid_head * BLOCK_H + tl.arange(0, BLOCK_H)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    if not IS_SEQLEN_OFFSETS_TENSOR:
        rm_cs = rm + SEQLEN_OFFSETS
    else:
        rm_cs = rm + tl.load(SEQLEN_OFFSETS + pid_batch)
    rk_half = tl.arange(0, BLOCK_K // 2)
    cs = rm_cs[:, None] * ROTARY_DIM_HALF + rk_half[None, :]
    mask_cs = (rm_cs[:, None] < seqlen_ro) & (rk_half[None, :] < ROTARY_DIM_HALF)
    cos = tl.load(COS + cs, mask=mask_cs, other=1.0).to(tl.float32)
    sin = tl.load(SIN + cs, mask=mask_cs, other=0.0).to(tl.float32)
    if CONJUGATE:
        sin = -sin
    if not INTERLEAVED:
        at = rh[:, None, None] * stride_x_nheads + rm[None, :, None] * stride_x_seqlen + rk_half[None, None, :] * stride_x_headdim
        to = rh[:, None, None] * stride_out_nheads + rm[None, :, None] * stride_out_seqlen + rk_half[None, None, :] * stride_out_headdim
        mask = (rh[:, None, None] < nheads) & (rm[None, :, None] < seqlen) & (rk_half[None, None, :] < ROTARY_DIM_HALF)
        x0 = tl.load(X + at, mask=mask, other=0.0).to(tl.float32)
        x1 = tl.load(X + at + ROTARY_DIM_HALF * stride_x_headdim, mask=mask, other=0.0).to(tl.float32)
        tl.store(OUT + to, x0 * cos - x1 * sin, mask=mask)
        tl.store(OUT + to + ROTARY_DIM_HALF * stride_out_headdim, x0 * sin + x1 * cos, mask=mask)
    else:
        rk = tl.arange(0, BLOCK_K)
        at = rh[:, None, None] * stride_x_nheads + rm[None, :, None] * stride_x_seqlen + rk[None, None, :] * stride_x_headdim
        to = rh[:, None, None] * stride_out_nheads + rm[None, :, None] * stride_out_seqlen + rk[None, None, :] * stride_out_headdim
        mask = (rh[:, None, None] < nheads) & (rm[None, :, None] < seqlen) & (rk[None, None, :] < ROTARY_DIM)
        x = tl.load(X + at, mask=mask, other=0.0).to(tl.float32)
        x0, x1 = tl.split(tl.reshape(x, [BLOCK_H, BLOCK_M, BLOCK_K // 2, 2]))
        o0 = x0 * cos - x1 * sin
        o1 = x0 * sin + x1 * cos
        o = tl.reshape(tl.join(o0, o1), [BLOCK_H, BLOCK_M, BLOCK_K])
        tl.store(OUT + to, o, mask=mask)


@triton.jit
def rope_cached_kernel(
    POS, Q, CACHE, stride_q_token, stride_q_head, n_heads, HEAD: tl.constexpr, ROT: tl.constexpr, SECTIONS: tl.constexpr
):
    """Decode: positions index a cos|sin cache; several position rows make multimodal sections."""
    token = tl.program_id(0)
    half: tl.constexpr = ROT // 2
    at = tl.arange(0, half)
    position = tl.load(POS + token)
    if SECTIONS is not None:
        for i in tl.static_range(1, len(SECTIONS)):
            other = tl.load(POS + i * tl.num_programs(0) + token)
            position = tl.where(at >= SECTIONS[i], other, position)
    row = CACHE + position * ROT
    cos = tl.load(row + at)
    sin = tl.load(row + half + at)
    for head in range(n_heads):
        x = Q + token * stride_q_token + head * stride_q_head + at
        a = tl.load(x)
        b = tl.load(x + half)
        tl.store(x, a * cos - b * sin)
        tl.store(x + half, b * cos + a * sin)


def rope(q, k, cos, sin, backward=False):
    q, k = q.transpose(1, 2).contiguous(), k.transpose(1, 2).contiguous()
    batch, seq_len, n_q, hd = q.shape
    n_k = k.shape[2]
    rope_halves_kernel[(batch * seq_len,)](
        q, q.stride(1), k, k.stride(1), cos, cos.stride(-2), sin, sin.stride(-2), seq_len, n_q, n_k, hd,
        triton.next_power_of_2(n_q), triton.next_power_of_2(n_k), BACKWARD_PASS=backward,
    )
    return q.transpose(1, 2), k.transpose(1, 2)


def apply_rotary(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, offsets=0, cu_seqlens: Optional[torch.Tensor] = None,
    max_seqlen: Optional[int] = None, interleaved=False, conjugate=False,
) -> torch.Tensor:
    is_varlen = cu_seqlens is not None
    if not is_varlen:
        batch, seqlen, nheads, headdim = x.shape
    else:
        total, nheads, headdim = x.shape
        batch, seqlen = cu_seqlens.shape[0] - 1, max_seqlen
    seqlen_ro, rotary_dim = cos.shape
    rotary_dim *= 2
    out = torch.empty_like(x)
    grid = lambda META: (triton.cdiv(nheads, META["BLOCK_H"]), triton.cdiv(seqlen, META["BLOCK_M"]), batch)
    rotary_varlen_kernel[grid](
        out, x, cos, sin, cu_seqlens, offsets, seqlen, nheads, seqlen_ro,
        out.stride(0) if not is_varlen else 0, out.stride(-3), out.stride(-2), out.stride(-1),
        x.stride(0) if not is_varlen else 0, x.stride(-3), x.stride(-2), x.stride(-1),
        rotary_dim, isinstance(offsets, torch.Tensor), is_varlen, interleaved, conjugate, BLOCK_H=2, BLOCK_M=8,
    )
    return out


if __name__ == "__main__":
    device = torch.device("cuda")
    q, k = torch.randn(2, 6, 32, 64, device=device), torch.randn(2, 2, 32, 64, device=device)
    angle = torch.randn(1, 32, 32, device=device)
    rope(q, k, angle.cos(), angle.sin())
    rope(q, k, angle.cos(), angle.sin(), backward=True)
    cos, sin = angle[0].cos(), angle[0].sin()
    x = torch.randn(2, 32, 4, 64, device=device, dtype=torch.bfloat16)
    apply_rotary(x, cos, sin)
    apply_rotary(x, cos, sin, interleaved=True, conjugate=True)
    lengths = torch.tensor([0, 10, 32], dtype=torch.int32, device=device)
    apply_rotary(x[0], cos, sin, cu_seqlens=lengths, max_seqlen=22)
    apply_rotary(x, cos, sin, offsets=torch.tensor([0, 4], dtype=torch.int32, device=device))
    cache = torch.randn(128, 64, device=device)
    heads = torch.randn(16, 4, 64, device=device)
    positions = torch.arange(16, device=device)
    rope_cached_kernel[(16,)](positions, heads, cache, *heads.stride()[:2], 4, HEAD=64, ROT=64, SECTIONS=None)
    three = torch.arange(48, device=device).view(3, 16)
    rope_cached_kernel[(16,)](three, heads, cache, *heads.stride()[:2], 4, HEAD=64, ROT=64, SECTIONS=(0, 8, 16))
