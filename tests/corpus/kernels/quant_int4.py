"""Four-bit weights: unpacked by shifts in a matmul with group scales, whole dequantizing, and a lookup table for nf4."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK_SIZE_N": n, "BLOCK_SIZE_K": 32, "SPLIT_K": s}, num_stages=2, num_warps=4) for n, s in ((32, 1), (64, 2))],
    key=["M", "N", "K"],
    reset_to_zero=["c_ptr"],
)
@triton.jit
def matmul_w4a16_kernel(
    a_ptr, b_ptr, c_ptr, scales_ptr, zeros_ptr, g_ptr, M, N, K, group_size,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, stride_scales, stride_zeros,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, SPLIT_K: tl.constexpr,
):
    """B is (K/8, N) int32, eight values of K a word; zeros are packed eight of N a word; g_ptr orders groups by act."""
    bits: tl.constexpr = 4
    per_word: tl.constexpr = 32 // bits
    pid = tl.program_id(0)
    pid_k = tl.program_id(1)
    num_n = tl.cdiv(N, BLOCK_SIZE_N)
    offs_m = pid // num_n * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid % num_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    offs_k = pid_k * BLOCK_SIZE_K + tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + (offs_k // per_word)[:, None] * stride_bk + offs_n[None, :] * stride_bn
    shift = (offs_k % per_word) * bits
    zero_shift = (offs_n % per_word) * bits
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K * SPLIT_K)):
        a = tl.load(a_ptrs, mask=offs_m[:, None] < M, other=0.0)
        b = tl.load(b_ptrs)
        if g_ptr is not None:
            g = tl.load(g_ptr + offs_k + k * BLOCK_SIZE_K * SPLIT_K)
        else:
            g = (offs_k + k * BLOCK_SIZE_K * SPLIT_K) // group_size
        scales = tl.load(scales_ptr + g[:, None] * stride_scales + offs_n[None, :])
        zeros = tl.load(zeros_ptr + g[:, None] * stride_zeros + (offs_n // per_word)[None, :])
        zeros = (zeros >> zero_shift[None, :]) & 0xF
        b = (b >> shift[:, None]) & 0xF
        b = (b - zeros - 1).to(scales.dtype) * scales
        acc += tl.dot(a, b.to(a.dtype))
        a_ptrs += BLOCK_SIZE_K * SPLIT_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * SPLIT_K // per_word * stride_bk
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    c = acc.to(c_ptr.dtype.element_ty)
    if SPLIT_K == 1:
        tl.store(c_ptrs, c, mask=mask)
    else:
        tl.atomic_add(c_ptrs, c, mask=mask, sem="release", scope="gpu")


@triton.jit
def awq_dequantize_kernel(
    qweight_ptr, scales_ptr, zeros_ptr, group_size, result_ptr, num_cols, num_rows, BLOCK_X: tl.constexpr, BLOCK_Y: tl.constexpr
):
    """Eight columns a word, in an interleaved order that is undone by shifts."""
    offs_y = tl.program_id(1) * BLOCK_Y + tl.arange(0, BLOCK_Y)
    offs_x = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)
    offsets = num_cols * offs_y[:, None] + offs_x[None, :]
    masks = (offs_y < num_rows)[:, None] & (offs_x < num_cols)[None, :]
    words = tl.load(qweight_ptr + offsets, masks, 0)
    words = tl.interleave(words, words)
    words = tl.interleave(words, words)
    words = tl.interleave(words, words)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.broadcast_to((order * 4)[None, :], (BLOCK_Y * BLOCK_X, 8))
    shifts = tl.reshape(shifts, (BLOCK_Y, BLOCK_X * 8))
    iweights = (words >> shifts) & 0xF
    row = tl.program_id(1) * BLOCK_Y // group_size + tl.arange(0, 1)
    zero_at = num_cols * row[:, None] + offs_x[None, :]
    zeros = tl.load(zeros_ptr + zero_at, (offs_x < num_cols)[None, :], 0)
    zeros = tl.interleave(zeros, zeros)
    zeros = tl.interleave(zeros, zeros)
    zeros = tl.interleave(zeros, zeros)
    zeros = (tl.broadcast_to(zeros, (BLOCK_Y, BLOCK_X * 8)) >> shifts) & 0xF
    out_x = tl.program_id(0) * BLOCK_X * 8 + tl.arange(0, BLOCK_X * 8)
    scales = tl.load(scales_ptr + num_cols * 8 * row[:, None] + out_x[None, :], (out_x < num_cols * 8)[None, :], 0.0)
    result = ((iweights - zeros) * scales).to(result_ptr.type.element_ty)
    tl.store(result_ptr + num_cols * 8 * offs_y[:, None] + out_x[None, :], result, (offs_y < num_rows)[:, None] & (out_x < num_cols * 8)[None, :])


@triton.jit
def dequantize_nf4_kernel(packed_ptr, absmax_ptr, code_ptr, out_ptr, n_bytes, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n_bytes
    byte = tl.load(packed_ptr + at, mask=mask, other=0)
    high = tl.load(code_ptr + (byte >> 4).to(tl.int32))
    low = tl.load(code_ptr + (byte & 0xF).to(tl.int32))
    absmax = tl.load(absmax_ptr + at * 2 // GROUP, mask=mask, other=0.0)
    values = tl.interleave(high * absmax, low * absmax)
    out_at = tl.program_id(0) * BLOCK * 2 + tl.arange(0, BLOCK * 2)
    tl.store(out_ptr + out_at, values.to(out_ptr.dtype.element_ty), mask=out_at < n_bytes * 2)


@triton.jit
def pack_int4_kernel(x_ptr, scale_ptr, packed_ptr, N, G: tl.constexpr):
    row, group = tl.program_id(0), tl.program_id(1)
    x = tl.load(x_ptr + row * N + group * G + tl.arange(0, G)).to(tl.float32)
    scale = tl.max(tl.abs(x)) / 7.0
    q = (tl.floor(x / scale + 0.5).to(tl.int32) + 8) & 0xF
    low, high = tl.split(tl.reshape(q, (G // 2, 2)))
    tl.store(packed_ptr + row * (N // 2) + group * (G // 2) + tl.arange(0, G // 2), (low | (high << 4)).to(tl.uint8))
    tl.store(scale_ptr + row * (N // G) + group, scale)


class QuantLinear(torch.nn.Module):
    def __init__(self, infeatures, outfeatures, group_size=64, act_order=False):
        super().__init__()
        self.infeatures, self.outfeatures, self.group_size = infeatures, outfeatures, group_size
        groups = infeatures // group_size
        self.register_buffer("qweight", torch.zeros((infeatures // 8, outfeatures), dtype=torch.int32, device="cuda"))
        self.register_buffer("qzeros", torch.zeros((groups, outfeatures // 8), dtype=torch.int32, device="cuda"))
        self.register_buffer("scales", torch.ones((groups, outfeatures), dtype=torch.float16, device="cuda"))
        order = torch.tensor([i // group_size for i in range(infeatures)], dtype=torch.int32, device="cuda")
        self.g_idx = order if act_order else None

    def forward(self, x):
        a = x.reshape(-1, self.infeatures)
        M, N = a.shape[0], self.outfeatures
        c = torch.zeros((M, N), device=a.device, dtype=torch.float16)
        grid = lambda META: (triton.cdiv(M, META["BLOCK_SIZE_M"]) * triton.cdiv(N, META["BLOCK_SIZE_N"]), META["SPLIT_K"])
        matmul_w4a16_kernel[grid](
            a, self.qweight, c, self.scales, self.qzeros, self.g_idx, M, N, self.infeatures, self.group_size,
            a.stride(0), a.stride(1), self.qweight.stride(0), self.qweight.stride(1), c.stride(0), c.stride(1),
            self.scales.stride(0), self.qzeros.stride(0), BLOCK_SIZE_M=16,
        )
        return c.view(*x.shape[:-1], N)


if __name__ == "__main__":
    x = torch.randn(2, 5, 256, device="cuda", dtype=torch.float16)
    layer = QuantLinear(256, 128)
    layer(x)
    QuantLinear(256, 128, act_order=True)(x)
    out = torch.empty(256, 128, device="cuda", dtype=torch.float16)
    awq_dequantize_kernel[(1, 16)](layer.qweight.view(256, 16), layer.scales, layer.qzeros, 64, out, 16, 256, BLOCK_X=16, BLOCK_Y=16)
    code = torch.linspace(-1, 1, 16, device="cuda")
    packed = torch.zeros(2048, dtype=torch.uint8, device="cuda")
    flat = torch.empty(4096, dtype=torch.bfloat16, device="cuda")
    dequantize_nf4_kernel[(4,)](packed, torch.ones(64, device="cuda"), code, flat, 2048, GROUP=64, BLOCK=512)
    pack_int4_kernel[(16, 4)](flat.view(16, 256), torch.empty(16, 4, device="cuda"), packed, 256, G=64)
