"""Wrappers in the styles that libraries have: guards, decorators, routing, chunks, quantization, rotary tables."""

from __future__ import annotations

import contextlib
import functools
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

HAS_TMA = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 9
IS_AMD = getattr(torch.version, "hip", None) is not None
IS_NVIDIA_HOPPER = "H100" in torch.cuda.get_device_name(0) or HAS_TMA
TORCH_TO_TRITON = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}
amp_custom_fwd = functools.partial(torch.amp.custom_fwd, device_type="cuda")
amp_custom_bwd = functools.partial(torch.amp.custom_bwd, device_type="cuda")


def input_guard(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        contiguous = [item if not isinstance(item, torch.Tensor) else item.contiguous() for item in args]
        tensor = next((item for item in args if isinstance(item, torch.Tensor)), None)
        where = torch.cuda.device(tensor.device.index) if tensor is not None else contextlib.nullcontext()
        with where:
            return fn(*contiguous, **kwargs)

    return wrapper


@triton.heuristics({"HAS_WEIGHT": lambda args: args["w"] is not None})
@triton.jit
def rms_kernel(x, w, y, rstd, stride, eps, N: tl.constexpr, BLOCK: tl.constexpr, HAS_WEIGHT: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < N, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(v * v) / N + eps)
    tl.store(rstd + row, r)
    v *= r
    if HAS_WEIGHT:
        v *= tl.load(w + at, mask=at < N)
    tl.store(y + row * stride + at, v.to(y.dtype.element_ty), mask=at < N)


class RMSNormFunction(torch.autograd.Function):
    @staticmethod
    @input_guard
    @amp_custom_fwd
    def forward(ctx, x, weight: torch.Tensor | None, eps: float = 1e-6):
        shape = x.shape
        x = x.view(-1, shape[-1])
        y = torch.empty_like(x, dtype=x.dtype)
        rstd = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
        block = min(65536 // x.element_size(), triton.next_power_of_2(x.shape[1]))
        rms_kernel[(x.shape[0],)](x, weight, y, rstd, x.stride(0), eps, N=x.shape[1], BLOCK=block)
        ctx.save_for_backward(x, weight, rstd)
        ctx.shape, ctx.eps = shape, eps
        return y.view(*shape)

    @staticmethod
    @input_guard
    @amp_custom_bwd
    def backward(ctx, dy):
        x, weight, rstd = ctx.saved_tensors
        dy = dy.view(-1, dy.shape[-1])
        dx = torch.empty_like(dy)
        rms_kernel[(x.shape[0],)](dy, weight, dx, rstd, dy.stride(0), ctx.eps, N=x.shape[1], BLOCK=1024)
        return dx.view(ctx.shape), torch.zeros_like(weight) if weight is not None else None, None


class RMSNorm(nn.Module):
    def __init__(self, hidden: int, eps: float = 1e-6, device=None, dtype=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden, device=device, dtype=dtype))
        self.register_buffer("steps", torch.zeros(1), persistent=False)
        self.eps = eps
        nn.init.ones_(self.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return RMSNormFunction.apply(x, self.weight, self.eps)


@triton.jit
def loss_kernel(logits, stride, target, loss, ignore, n_cols, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x = tl.load(logits + row * stride + at, mask=at < n_cols, other=float("-inf")).to(tl.float32)
    y = tl.load(target + row)
    tl.store(loss + row, tl.where(y == ignore, 0.0, tl.log(tl.sum(tl.exp(x))) * scale))


def fused_linear_cross_entropy(x, weight, target, ignore_index=-100):
    BT, H = x.shape
    V = weight.shape[0]
    increase = triton.cdiv(V, H)
    chunk = triton.next_power_of_2(triton.cdiv(BT, increase))
    chunks = triton.cdiv(BT, chunk)
    grad_weight = torch.zeros_like(weight, device=x.device) if weight.requires_grad else None
    losses = torch.zeros(BT, dtype=torch.float32, device=x.device)
    total = (target != ignore_index).sum().item()
    for part in range(chunks):
        start, end = part * chunk, min((part + 1) * chunk, BT)
        logits = (x[start:end] @ weight.t()).contiguous()
        loss_kernel[(end - start,)](
            logits, logits.stride(-2), target[start:end], losses[start:end], ignore_index, V, 1 / total, BLOCK=1024
        )
        if grad_weight is not None:
            torch.addmm(grad_weight, logits.detach().t(), x[start:end], out=grad_weight)
    return torch.sum(losses)


@triton.jit
def moe_kernel(a, w, out, sorted_ids, experts, n_tokens, n_valid, top_k: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(sorted_ids + at, mask=at < n_valid, other=0)
    tl.store(out + ids, tl.load(a + ids // top_k) + tl.load(w + tl.load(experts + tl.program_id(0))))


def moe(hidden, gating, top_k, weights):
    tokens, experts = gating.shape
    scores = torch.softmax(gating, dim=-1, dtype=torch.float32)
    topk_weights, topk_ids = torch.topk(scores, top_k, dim=-1)
    topk_weights = topk_weights / topk_weights.sum(dim=-1, keepdim=True)
    flat = topk_ids.flatten()
    counts = torch.bincount(flat, minlength=experts)
    padded = (counts + 15) // 16 * 16
    sorted_ids = torch.argsort(flat, stable=True).to(torch.int32)
    blocks = int(padded.sum().item()) // 16
    block_experts = torch.repeat_interleave(torch.arange(experts, device=flat.device), padded // 16).int()
    assert block_experts.numel() == blocks
    out = torch.zeros(tokens * top_k, hidden.shape[-1], device=hidden.device, dtype=hidden.dtype)
    moe_kernel[(8,)](hidden, weights, out, sorted_ids, block_experts, tokens, flat.numel(), top_k=top_k, BLOCK=16)
    return (out.view(tokens, top_k, -1) * topk_weights.unsqueeze(-1)).sum(dim=1).to(hidden.dtype)


@triton.jit
def quantize_kernel(x, q, s, stride, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * stride + at).to(tl.float32)
    scale = tl.max(tl.abs(v)) / 448.0
    tl.store(s + tl.program_id(0), scale)
    tl.store(q + tl.program_id(0) * stride + at, (v / scale).to(q.dtype.element_ty))


def quantize(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    assert info.max in (448.0, 127, 57344.0)
    q = torch.empty(x.shape, dtype=dtype, device=x.device)
    s = x.new_empty(*x.size()[:-1], 1, dtype=torch.float32).squeeze(-1)
    quantize_kernel[(math.prod(x.shape[:-1]),)](x, q, s, x.stride(-2), BLOCK=x.shape[-1])
    return q, s


@triton.jit
def rotary_kernel(q, cos, sin, stride_b, stride_s, stride_h, H, HALF: tl.constexpr, CONJ: tl.constexpr):
    at = tl.arange(0, HALF)
    place = q + tl.program_id(0) * stride_b + tl.program_id(1) * stride_s
    c, s = tl.load(cos + tl.program_id(1) * HALF + at), tl.load(sin + tl.program_id(1) * HALF + at)
    for h in range(H):
        x0, x1 = tl.load(place + h * stride_h + at), tl.load(place + h * stride_h + HALF + at)
        tl.store(place + h * stride_h + at, x0 * c - x1 * s)
        tl.store(place + h * stride_h + HALF + at, x1 * c + x0 * s)


def rotary(q, base=10000.0, interleaved=False):
    B, H, S, D = q.shape
    inverse = 1.0 / (base ** (torch.arange(0, D, 2, dtype=torch.float32, device=q.device) / D))
    freqs = torch.outer(torch.arange(S, device=q.device, dtype=torch.float32), inverse)
    cos, sin = freqs.cos().to(q.dtype), freqs.sin().to(q.dtype)
    q = q.transpose(1, 2)
    rotary_kernel[(B, S)](q, cos, sin, q.stride(0), q.stride(1), q.stride(2), H, HALF=D // 2, CONJ=interleaved)
    return q.transpose(1, 2)


def main():
    torch.manual_seed(int(os.environ.get("SEED", "42")))
    torch.backends.cuda.matmul.allow_tf32 = True
    with torch.inference_mode():
        model = RMSNorm(768, device="cuda", dtype=torch.bfloat16)
        model(torch.randn(2, 128, 768, device="cuda", dtype=torch.bfloat16))
    model = nn.ModuleList([RMSNorm(1000) for _ in range(2)]).to(device="cuda", dtype=torch.float16)
    x = torch.randn(4, 1000, device="cuda", dtype=torch.float16, requires_grad=True)
    for layer in model:
        F.mse_loss(layer(x) + x, torch.zeros_like(x)).backward()
        assert layer.weight.grad is not None
        x = x.detach().clone().requires_grad_()
    RMSNormFunction.apply(x, None)
    weight = torch.randn(4096, 512, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    target = torch.randint(0, 4096, (300,), device="cuda")
    target[torch.arange(10, device="cuda")] = -100
    fused_linear_cross_entropy(torch.randn(300, 512, device="cuda", dtype=torch.bfloat16), weight, target)
    hidden = torch.randn(64, 128, device="cuda", dtype=torch.float16)
    moe(hidden, torch.randn(64, 8, device="cuda"), 2, torch.randn(8, 128, device="cuda", dtype=torch.float16))
    for dtype in (torch.int8, torch.float8_e4m3fn) if HAS_TMA else (torch.int8,):
        quantize(torch.randn(8, 16, 256, device="cuda", dtype=torch.float16), dtype)
    rotary(torch.randn(2, 8, 64, 128, device="cuda", dtype=torch.float16))
    assert TORCH_TO_TRITON[hidden.dtype] is tl.float16
    assert not IS_AMD


if __name__ == "__main__":
    main()
