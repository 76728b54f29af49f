"""Kernels behind torch's custom operators, compiled functions and library definitions."""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


@triton_op("mine::scale", mutates_args={})
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(scale_kernel)[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), factor, BLOCK=128)
    return out


def backward(ctx, gradient):
    return scale(gradient, ctx.factor), None


def setup_context(ctx, inputs, output):
    ctx.factor = inputs[1]


scale.register_autograd(backward, setup_context=setup_context)


@torch.library.custom_op("mine::double", mutates_args=(), device_types="cuda")
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    scale_kernel.run(x, out, x.numel(), 2.0, BLOCK=256, grid=(triton.cdiv(x.numel(), 256),), warmup=False)
    return out


@double.register_fake
def _(x):
    return torch.empty_like(x)


library = torch.library.Library("other", "DEF")
library.define("triple(Tensor x) -> Tensor")


def triple(x):
    return scale(x, 3.0)


library.impl("triple", triple, "CUDA")


@torch.compile
def both(x):
    return torch.ops.mine.double(x) + torch.ops.other.triple(x.half())


x = torch.randn(1 << 20, device="cuda", requires_grad=True)
scale(x, 0.5).sum().backward()
both(x.detach())
with torch.autocast("cuda", dtype=torch.float16), torch.cuda.device(x.device):
    both(x.detach()[:1000])
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    double(x.detach().bfloat16())
torch.cuda.synchronize()
