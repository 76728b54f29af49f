"""Int8: quantizing by token or tensor, and a matmul whose epilogue scales, adds a bias and rounds back to int8."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def round_to_int8(x):
    return tl.clamp(libdevice.rint(x), -128.0, 127.0).to(tl.int8)


@triton.jit
def per_token_quant_int8_kernel(x_ptr, xq_ptr, scale_ptr, sum_ptr, stride_x, stride_xq, N, CAL_SUM: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    absmax = tl.maximum(tl.max(tl.abs(x)), 1e-10)
    if CAL_SUM:
        tl.store(sum_ptr + row, tl.sum(x, axis=0).to(sum_ptr.dtype.element_ty))
    q = round_to_int8(x * (127 / absmax))
    tl.store(xq_ptr + row * stride_xq + cols, q, mask=mask)
    tl.store(scale_ptr + row, absmax / 127)


@triton.jit
def absmax_kernel(x_ptr, out_ptr, numel, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < numel, other=0.0).to(tl.float32)
    tl.atomic_max(out_ptr, tl.max(tl.abs(x), axis=0))


@triton.jit
def static_scaled_int8_quant_kernel(x_ptr, scale_ptr, zero_ptr, out_ptr, numel, SYMMETRIC: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < numel).to(tl.float32) / tl.load(scale_ptr)
    if not SYMMETRIC:
        x += tl.load(zero_ptr)
    tl.store(out_ptr + at, round_to_int8(x), mask=at < numel)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 64}, num_stages=2, num_warps=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}, num_stages=3, num_warps=4),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def scaled_mm_kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, c_ptr, bias_ptr, out_scale, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    ACC: tl.constexpr, SCALE_A_TENSOR: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    offs_m = (pid // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_n = (pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    a_ptrs = a_ptr + stride_am * offs_m[:, None] + stride_ak * offs_k[None, :]
    b_ptrs = b_ptr + stride_bk * offs_k[:, None] + stride_bn * offs_n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for _ in range(0, tl.cdiv(K, BLOCK_K)):
        mask_k = offs_k < K
        a = tl.load(a_ptrs, mask=(offs_m < M)[:, None] & mask_k[None, :], other=0)
        b = tl.load(b_ptrs, mask=mask_k[:, None] & (offs_n < N)[None, :], other=0)
        acc = tl.dot(a, b, acc, out_dtype=ACC)
        offs_k += BLOCK_K
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if SCALE_A_TENSOR:
        scale_a = tl.load(scale_a_ptr)
        y = acc.to(tl.float32) * scale_a
    else:
        y = acc.to(tl.float32) * tl.load(scale_a_ptr + offs_m, mask=offs_m < M)[:, None]
    y = y * tl.load(scale_b_ptr + offs_n, mask=offs_n < N)[None, :]
    if bias_ptr is not None:
        y += tl.load(bias_ptr + offs_n, mask=offs_n < N)[None, :]
    mask = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    c_ptrs = c_ptr + stride_cm * offs_m[:, None] + stride_cn * offs_n[None, :]
    if c_ptr.dtype.element_ty == tl.int8:
        tl.store(c_ptrs, round_to_int8(y / out_scale), mask=mask)
    else:
        tl.store(c_ptrs, y.to(c_ptr.type.element_ty), mask=mask)


def per_token_quant_int8(x, cal_sum=False):
    M, N = x.numel() // x.shape[-1], x.shape[-1]
    xq = torch.empty_like(x, device=x.device, dtype=torch.int8)
    scales = torch.empty(x.shape[:-1] + (1,), device=x.device, dtype=torch.float32)
    sums = torch.empty(x.shape[:-1], device=x.device, dtype=x.dtype) if cal_sum else None
    block = triton.next_power_of_2(N)
    per_token_quant_int8_kernel[(M,)](
        x, xq, scales, sums, stride_x=x.stride(-2), stride_xq=xq.stride(-2), N=N, CAL_SUM=cal_sum, BLOCK=block,
        num_warps=min(max(block // 256, 1), 8), num_stages=1,
    )
    return (xq, scales, sums) if cal_sum else (xq, scales)


def scaled_mm(a, b, scale_a, scale_b, out_dtype, bias=None, out_scale=None):
    M, K, N = a.shape[0], a.shape[1], b.shape[1]
    out = torch.empty((M, N), dtype=out_dtype, device=a.device)
    acc = tl.float32 if a.dtype.is_floating_point else tl.int32
    scaled_mm_kernel[lambda META: (triton.cdiv(M, META["BLOCK_M"]) * triton.cdiv(N, META["BLOCK_N"]),)](
        a, b, scale_a, scale_b, out, bias, out_scale, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1),
        out.stride(0), out.stride(1), ACC=acc, SCALE_A_TENSOR=scale_a.numel() == 1,
    )
    return out


if __name__ == "__main__":
    x = torch.randn(4, 24, 256, device="cuda", dtype=torch.half)
    xq, scales = per_token_quant_int8(x)
    per_token_quant_int8(x, cal_sum=True)
    top = torch.zeros(1, device="cuda")
    absmax_kernel[(triton.cdiv(x.numel(), 1024),)](x, top, x.numel(), BLOCK=1024)
    for zero in (None, torch.zeros(1, dtype=torch.int32, device="cuda")):
        static_scaled_int8_quant_kernel[(24,)](x, top, zero, xq, x.numel(), SYMMETRIC=zero is None, BLOCK=1024)
    b = torch.randint(-128, 127, (128, 256), device="cuda", dtype=torch.int8).t()
    per_channel = torch.rand(128, 1, device="cuda")
    scaled_mm(xq.view(-1, 256), b, scales.view(-1, 1), per_channel, torch.bfloat16)
    scaled_mm(xq.view(-1, 256), b, top, per_channel, torch.int8, bias=per_channel.view(-1), out_scale=0.5)
