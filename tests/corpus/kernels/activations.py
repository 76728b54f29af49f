"""Gated activations, forward and backward, with helpers, an activation chosen by name, and a wrapper that calculates settings."""

import functools

import torch
import triton
import triton.language as tl

MAX_FUSED_SIZE = 65536
SQRT_2_OVER_PI: tl.constexpr = tl.constexpr(0.7978845608028654)
COEFFICIENT = tl.constexpr(0.044715)


def ensure_contiguous(fn):
    @functools.wraps(fn)
    def wrapper(ctx, *args, **kwargs):
        def contiguous(x):
            return x.contiguous() if isinstance(x, torch.Tensor) else x

        return fn(ctx, *[contiguous(a) for a in args], **{k: contiguous(v) for k, v in kwargs.items()})

    return wrapper


def calculate_settings(n):
    block = triton.next_power_of_2(n)
    if block > MAX_FUSED_SIZE:
        raise RuntimeError(f"n = {n} exceeds the maximum CUDA blocksize = {MAX_FUSED_SIZE}.")
    num_warps = 4
    if block >= 8192:
        num_warps = 16
    elif block >= 2048:
        num_warps = 8
    return block, num_warps


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def gelu_tanh(x):
    return 0.5 * x * (1 + tanh(SQRT_2_OVER_PI * (x + COEFFICIENT * x * x * x)))


@triton.jit
def swiglu_forward_kernel(a_ptr, b_ptr, c_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    program_id = tl.program_id(0).to(tl.int64)
    a_ptr += program_id * stride
    b_ptr += program_id * stride
    c_ptr += program_id * stride
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    a_row = tl.load(a_ptr + cols, mask=mask, other=0).to(tl.float32)
    b_row = tl.load(b_ptr + cols, mask=mask, other=0)
    tl.store(c_ptr + cols, silu(a_row).cast(b_row.dtype) * b_row, mask=mask)


@triton.jit
def swiglu_backward_kernel(dc_ptr, a_ptr, b_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    at = row * stride + cols
    dc = tl.load(dc_ptr + at, mask=mask, other=0)
    a = tl.load(a_ptr + at, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=mask, other=0)
    sig = tl.sigmoid(a)
    act = a * sig
    tl.store(a_ptr + at, dc * (act * (1 - sig) + sig) * b, mask=mask)
    tl.store(b_ptr + at, dc * act, mask=mask)


class SwiGLU(torch.autograd.Function):
    @staticmethod
    @ensure_contiguous
    def forward(ctx, a, b):
        shape = a.shape
        n_cols = shape[-1]
        a, b = a.view(-1, n_cols), b.view(-1, n_cols)
        c = torch.empty_like(a)
        block, num_warps = calculate_settings(n_cols)
        swiglu_forward_kernel[(a.shape[0],)](
            a, b, c, c.stride(-2), n_cols=n_cols, BLOCK_SIZE=block, num_warps=num_warps
        )
        ctx.save_for_backward(a, b)
        return c.view(*shape)

    @staticmethod
    @ensure_contiguous
    def backward(ctx, dc):
        a, b = ctx.saved_tensors
        shape, n_cols = dc.shape, dc.shape[-1]
        dc = dc.view(-1, n_cols)
        block, num_warps = calculate_settings(n_cols)
        swiglu_backward_kernel[(dc.shape[0],)](
            dc, a, b, dc.stride(-2), n_cols=n_cols, BLOCK_SIZE=block, num_warps=num_warps
        )
        return a.view(*shape), b.view(*shape)


@triton.jit
def geglu_kernel(gate_up_ptr, out_ptr, n_cols, BLOCK: tl.constexpr, ACTIVATION: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate = tl.load(gate_up_ptr + row * 2 * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_up_ptr + row * 2 * n_cols + n_cols + cols, mask=mask, other=0.0)
    if ACTIVATION == "gelu_tanh":
        act = gelu_tanh(gate)
    elif ACTIVATION == "gelu":
        act = 0.5 * gate * (1.0 + tl.erf(gate * 0.7071067811865476))
    else:
        tl.static_assert(ACTIVATION == "relu2", "unknown activation")
        positive = tl.maximum(gate, 0.0)
        act = positive * positive
    tl.store(out_ptr + row * n_cols + cols, (act * up).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def geglu_backward_kernel(dout_ptr, gate_up_ptr, dgate_up_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate_ptrs = gate_up_ptr + row * 2 * n_cols + cols
    x = tl.load(gate_ptrs, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_ptrs + n_cols, mask=mask, other=0.0).to(tl.float32)
    dout = tl.load(dout_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    inner = tanh(SQRT_2_OVER_PI * x * (1 + COEFFICIENT * x * x))
    slope = 0.5 * (1 + inner) + 0.5 * x * (1 - inner * inner) * SQRT_2_OVER_PI * (1 + 3 * COEFFICIENT * x * x)
    out_ptrs = dgate_up_ptr + row * 2 * n_cols + cols
    tl.store(out_ptrs, (dout * up * slope).to(dgate_up_ptr.dtype.element_ty), mask=mask)
    tl.store(out_ptrs + n_cols, (dout * 0.5 * x * (1 + inner)).to(dgate_up_ptr.dtype.element_ty), mask=mask)


@triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((512, 4), (1024, 8))], key=["numel"])
@triton.jit
def leaky_relu_inplace_kernel(x_ptr, numel, negative_slope: tl.float32, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < numel)
    tl.store(x_ptr + at, tl.where(x >= 0, x, x * negative_slope), mask=at < numel)


@triton.jit
def silu_mul_clamped_kernel(x_ptr, out_ptr, n_cols, alpha: tl.constexpr, limit: tl.constexpr, BLOCK: tl.constexpr):
    """Interleaved gate and up, both clamped."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    both = tl.load(x_ptr + row * 2 * n_cols + tl.arange(0, 2 * BLOCK), mask=tl.arange(0, 2 * BLOCK) < 2 * n_cols)
    gate, up = tl.split(tl.reshape(both, (BLOCK, 2)))
    gate = tl.minimum(gate.to(tl.float32), limit)
    up = tl.clamp(up.to(tl.float32), -limit, limit)
    y = gate / (1 + tl.exp(-alpha * gate)) * (up + 1)
    tl.store(out_ptr + row * n_cols + cols, y, mask=cols < n_cols)


if __name__ == "__main__":
    a, b = (torch.randn(2, 8, 700, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    SwiGLU.apply(a, b).sum().backward()
    gate_up = torch.randn(16, 2 * 512, device="cuda", dtype=torch.half)
    out = torch.empty(16, 512, device="cuda", dtype=torch.half)
    for name in ("gelu_tanh", "gelu", "relu2"):
        geglu_kernel[(2, 16)](gate_up, out, 512, BLOCK=256, ACTIVATION=name)
    geglu_backward_kernel[(2, 16)](out, gate_up, torch.empty_like(gate_up), 512, BLOCK=256)
    leaky_relu_inplace_kernel[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](out, out.numel(), 0.01)
    silu_mul_clamped_kernel[(16,)](gate_up, out, 512, alpha=1.702, limit=7.0, BLOCK=512)
