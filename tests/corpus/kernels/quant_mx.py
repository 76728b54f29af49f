"""Microscaling formats: quantizing to e2m1 with shared exponents, dequantizing, and scaled dots on packed operands."""

import torch
import triton
import triton.language as tl

MX_BLOCK = tl.constexpr(32)


@triton.jit
def shared_exponent(amax, TARGET: tl.constexpr):
    """Return the e8m0 byte of a power of two that brings amax under the target, rounded up in the exponent's bits."""
    scale = amax / TARGET
    bits = (scale.to(tl.uint32, bitcast=True) + 0x007FFFFF) & 0x7F800000
    return (bits >> 23).to(tl.uint8)


@triton.jit
def to_e2m1(x):
    a = tl.abs(x)
    code = (a > 0.25).to(tl.uint8) + (a >= 0.75).to(tl.uint8) + (a > 1.25).to(tl.uint8) + (a >= 1.75).to(tl.uint8)
    code += (a > 2.5).to(tl.uint8) + (a >= 3.5).to(tl.uint8) + (a > 5.0).to(tl.uint8)
    return tl.where(x < 0, code | 0x8, code)


@triton.jit
def downcast_to_mxfp4_kernel(x_ptr, out_ptr, scale_ptr, stride_x, K, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, M):
    tl.static_assert(BLOCK_K % MX_BLOCK == 0, "a block is whole groups")
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    groups: tl.constexpr = BLOCK_K // MX_BLOCK
    mask = (rows < M)[:, None] & (cols < K)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    x = x.reshape([BLOCK_M, groups, MX_BLOCK])
    byte = shared_exponent(tl.max(tl.abs(x), axis=2), 6.0)
    inverse = ((254 - byte.to(tl.uint32)) << 23).to(tl.float32, bitcast=True)
    codes = to_e2m1(x * inverse[:, :, None])
    low, high = tl.split(codes.reshape([BLOCK_M, BLOCK_K // 2, 2]))
    half = tl.program_id(1) * (BLOCK_K // 2) + tl.arange(0, BLOCK_K // 2)
    tl.store(out_ptr + rows[:, None] * (K // 2) + half[None, :], low | (high << 4), mask=(rows < M)[:, None] & (half < K // 2)[None, :])
    g = tl.program_id(1) * groups + tl.arange(0, groups)
    tl.store(scale_ptr + rows[:, None] * (K // 32) + g[None, :], byte, mask=(rows < M)[:, None] & (g < K // 32)[None, :])


@triton.jit
def upcast_from_mxfp4_kernel(packed_ptr, scale_ptr, out_ptr, M, K, BLOCK_K: tl.constexpr):
    row = tl.program_id(0)
    half = tl.program_id(1) * (BLOCK_K // 2) + tl.arange(0, BLOCK_K // 2)
    byte = tl.load(packed_ptr + row * (K // 2) + half, mask=half < K // 2, other=0)
    codes = tl.interleave(byte & 0xF, byte >> 4)
    magnitude = (codes & 0x7).to(tl.int32)
    value = tl.where(magnitude < 2, magnitude * 0.5, (1.0 + (magnitude & 1) * 0.5) * tl.exp2((magnitude >> 1).to(tl.float32) - 1.0))
    value = tl.where(codes >= 8, -value, value)
    cols = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    scale = tl.load(scale_ptr + row * (K // 32) + cols // 32, mask=cols < K, other=0)
    scale = (scale.to(tl.uint32) << 23).to(tl.float32, bitcast=True)
    tl.store(out_ptr + row * K + cols, (value * scale).to(out_ptr.dtype.element_ty), mask=cols < K)


@triton.jit
def mx_matmul_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, M, N, K,
    A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    A_PACK: tl.constexpr = 2 if A_FORMAT == "e2m1" else 1
    B_PACK: tl.constexpr = 2 if B_FORMAT == "e2m1" else 1
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_s = tl.arange(0, BLOCK_K // 32)
    offs_ak = tl.arange(0, BLOCK_K // A_PACK)
    offs_bk = tl.arange(0, BLOCK_K // B_PACK)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + offs_m[:, None] * (K // A_PACK) + k // A_PACK + offs_ak[None, :])
        b = tl.load(b_ptr + offs_n[None, :] * (K // B_PACK) + k // B_PACK + offs_bk[:, None])
        b_scale = tl.load(b_scale_ptr + offs_n[:, None] * (K // 32) + k // 32 + offs_s[None, :])
        if a_scale_ptr is not None:
            a_scale = tl.load(a_scale_ptr + offs_m[:, None] * (K // 32) + k // 32 + offs_s[None, :])
        else:
            a_scale = None
        acc = tl.dot_scaled(a, a_scale, A_FORMAT, b, b_scale, B_FORMAT, acc)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty))


if __name__ == "__main__":
    M, N, K = 64, 64, 256
    x = torch.randn(M, K, device="cuda", dtype=torch.bfloat16)
    packed = torch.empty(M, K // 2, device="cuda", dtype=torch.uint8)
    scale = torch.empty(M, K // 32, device="cuda", dtype=torch.uint8)
    downcast_to_mxfp4_kernel[(2, 4)](x, packed, scale, x.stride(0), K, 32, 64, M)
    upcast_from_mxfp4_kernel[(M, 1)](packed, scale, x, M, K, BLOCK_K=256)
    out = torch.empty(M, N, device="cuda", dtype=torch.bfloat16)
    fp8 = torch.empty(M, K, device="cuda", dtype=torch.float8_e5m2)
    for a, a_scale, b, formats in (
        (x, None, packed, ("bf16", "e2m1")),
        (fp8, scale, fp8, ("e5m2", "e5m2")),
        (packed, scale, packed, ("e2m1", "e2m1")),
    ):
        mx_matmul_kernel[(1, 1)](a, a_scale, b, scale, out, M, N, K, *formats, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64)
