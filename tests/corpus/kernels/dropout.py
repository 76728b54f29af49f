"""Dropout by philox: the seed given or read from memory, fused with a residual, remade for the backward; noise."""

import torch
import triton
import triton.language as tl


@triton.jit
def seeded_dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    keep = tl.rand(seed, at) > p
    tl.store(out_ptr + at, tl.where(keep, x / (1 - p), 0.0), mask=at < n)


@triton.jit
def dropout_add_kernel(x_ptr, residual_ptr, out_ptr, mask_ptr, seed_ptr, offset, n, p: tl.constexpr, STORE_MASK: tl.constexpr, BLOCK: tl.constexpr):
    """Four numbers a call of philox."""
    quarter = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    seed = tl.load(seed_ptr)
    r = tl.rand4x(seed, offset + quarter)
    for i in tl.static_range(4):
        at = tl.program_id(0) * BLOCK * 4 + i * BLOCK + tl.arange(0, BLOCK)
        keep = r[i] >= p
        x = tl.load(x_ptr + at, mask=at < n, other=0.0)
        y = tl.where(keep, x * (1.0 / (1.0 - p)), 0.0) + tl.load(residual_ptr + at, mask=at < n, other=0.0)
        tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=at < n)
        if STORE_MASK:
            tl.store(mask_ptr + at, keep, mask=at < n)


@triton.jit
def noise_kernel(out_ptr, n, seed: tl.uint64, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if KIND == "normal":
        y = tl.randn(seed, at)
    elif KIND == "uniform":
        y = tl.rand(seed, at, 7)
    else:
        y = (tl.randint(seed, at) % 100).to(tl.float32)
    tl.store(out_ptr + at, y, mask=at < n)


@triton.jit
def stochastic_round_kernel(x_ptr, out_ptr, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.uint32, bitcast=True)
    noise = tl.randint(seed, at).to(tl.uint32) & 0xFFFF
    rounded = ((bits + noise) & 0xFFFF0000).to(tl.float32, bitcast=True)
    tl.store(out_ptr + at, rounded.to(tl.bfloat16), mask=at < n)


def dropout(x, p, seed):
    out = torch.empty_like(x)
    assert x.is_contiguous()
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    seeded_dropout_kernel[grid](x, out, x.numel(), p, seed, BLOCK=512)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(4000, device="cuda")
    dropout(x, 0.5, seed=123)
    dropout(x, 0.1, seed=1 << 40)
    seed = torch.tensor([42], device="cuda", dtype=torch.int64)
    keep = torch.empty(4000, device="cuda", dtype=torch.bool)
    dropout_add_kernel[(8,)](x, x, torch.empty_like(x), None, seed, 0, 4000, p=0.25, STORE_MASK=False, BLOCK=128)
    dropout_add_kernel[(8,)](x.bfloat16(), x, torch.empty_like(x), keep, seed, 16, 4000, p=0.25, STORE_MASK=True, BLOCK=128)
    for kind in ("normal", "uniform", "integer"):
        noise_kernel[(8,)](x, 4000, 5, KIND=kind, BLOCK=512)
    stochastic_round_kernel[(8,)](x, x.bfloat16(), 4000, 9, BLOCK=512)
