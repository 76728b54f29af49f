"""Group norm over NCHW in two stages with a fused SiLU, and adaptive layer norm as diffusion transformers have it."""

import torch
import triton
import triton.language as tl


@triton.jit
def welford_combine(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    delta = mean_b - mean_a
    n = n_a + n_b
    ratio = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * n_a * ratio, n


@triton.jit
def group_norm_stats_kernel(X, MEAN, RSTD, group_size, eps, BLOCK: tl.constexpr):
    group = tl.program_id(0).to(tl.int64)
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, group_size, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < group_size
        x = tl.load(X + group * group_size + cols, mask=mask, other=0.0).to(tl.float32)
        new = count + mask.to(tl.float32)
        delta = tl.where(mask, x - mean, 0.0)
        mean += delta / tl.where(new == 0.0, 1.0, new)
        m2 += delta * tl.where(mask, x - mean, 0.0)
        count = new
    mean, m2, count = tl.reduce((mean, m2, count), 0, welford_combine)
    tl.store(MEAN + group, mean)
    tl.store(RSTD + group, tl.rsqrt(m2 / count + eps))


@triton.jit
def group_norm_apply_kernel(
    X, Y, W, B, MEAN, RSTD, C, HW, CHANNELS_PER_GROUP: tl.constexpr, SILU: tl.constexpr, BLOCK: tl.constexpr
):
    channel = tl.program_id(0)
    batch = tl.program_id(1)
    group = channel // CHANNELS_PER_GROUP
    groups = C // CHANNELS_PER_GROUP
    mean = tl.load(MEAN + batch * groups + group)
    rstd = tl.load(RSTD + batch * groups + group)
    w = tl.load(W + channel).to(tl.float32) * rstd
    b = tl.load(B + channel).to(tl.float32) - mean * w
    base = (batch.to(tl.int64) * C + channel) * HW
    for start in range(0, HW, BLOCK):
        at = start + tl.arange(0, BLOCK)
        y = tl.load(X + base + at, mask=at < HW).to(tl.float32) * w + b
        if SILU:
            y = y / (1.0 + tl.exp(-y))
        tl.store(Y + base + at, y.to(Y.dtype.element_ty), mask=at < HW)


@triton.jit
def group_norm_bwd_kernel(
    DY, X, W, MEAN, RSTD, DX, DW, DB, C, HW, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, DT: tl.constexpr = tl.float32
):
    group = tl.program_id(0)
    batch = tl.program_id(1)
    groups = C // CHANNELS
    mean = tl.load(MEAN + batch * groups + group)
    rstd = tl.load(RSTD + batch * groups + group)
    c1 = 0.0
    c2 = 0.0
    for i in tl.static_range(CHANNELS):
        channel = group * CHANNELS + i
        w = tl.load(W + channel).to(DT)
        dw = 0.0
        db = 0.0
        for start in range(0, HW, BLOCK):
            at = start + tl.arange(0, BLOCK)
            ptr = (batch * C + channel) * HW + at
            dy = tl.load(DY + ptr, mask=at < HW, other=0.0).to(DT)
            xhat = (tl.load(X + ptr, mask=at < HW, other=0.0).to(DT) - mean) * rstd
            dw += tl.sum(dy * xhat)
            db += tl.sum(dy)
        tl.atomic_add(DW + channel, dw)
        tl.atomic_add(DB + channel, db)
        c1 += dw * w
        c2 += db * w
    n = CHANNELS * HW
    for i in tl.static_range(CHANNELS):
        channel = group * CHANNELS + i
        w = tl.load(W + channel).to(DT)
        for start in range(0, HW, BLOCK):
            at = start + tl.arange(0, BLOCK)
            ptr = (batch * C + channel) * HW + at
            dy = tl.load(DY + ptr, mask=at < HW, other=0.0).to(DT)
            xhat = (tl.load(X + ptr, mask=at < HW, other=0.0).to(DT) - mean) * rstd
            tl.store(DX + ptr, ((dy * w - xhat * c1 / n - c2 / n) * rstd).to(DX.dtype.element_ty), mask=at < HW)


@triton.jit
def ada_layer_norm_kernel(X, SHIFT, SCALE, GATE, RES, Y, tokens, dim, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    batch = token // tokens
    cols = tl.arange(0, BLOCK)
    mask = cols < dim
    x = tl.load(X + token * dim + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / dim
    centred = tl.where(mask, x - mean, 0.0)
    y = centred * tl.rsqrt(tl.sum(centred * centred, 0) / dim + eps)
    y = y * (1.0 + tl.load(SCALE + batch * dim + cols, mask=mask)) + tl.load(SHIFT + batch * dim + cols, mask=mask)
    if GATE is not None:
        y = y * tl.load(GATE + batch * dim + cols, mask=mask)
    if RES is not None:
        y += tl.load(RES + token * dim + cols, mask=mask)
    tl.store(Y + token * dim + cols, y, mask=mask)


def group_norm(x, groups, weight, bias, eps=1e-5, silu=True):
    n, c, h, w = x.shape
    mean = torch.empty((n, groups), device=x.device, dtype=torch.float32)
    rstd = torch.empty_like(mean)
    y = torch.empty_like(x)
    group_norm_stats_kernel[(n * groups,)](x, mean, rstd, c // groups * h * w, eps, BLOCK=512)
    group_norm_apply_kernel[(c, n)](x, y, weight, bias, mean, rstd, c, h * w, c // groups, silu, 512)
    return y, mean, rstd


def group_norm_backward(dy, x, groups, weight, mean, rstd):
    n, c, h, w = x.shape
    dx = torch.empty_like(x)
    dw = torch.zeros(c, device=x.device, dtype=torch.float32)
    db = torch.zeros_like(dw)
    group_norm_bwd_kernel[(groups, n)](dy, x, weight, mean, rstd, dx, dw, db, c, h * w, CHANNELS=c // groups, BLOCK=256)
    return dx, dw, db


if __name__ == "__main__":
    x = torch.randn(2, 32, 16, 16, device="cuda", dtype=torch.half)
    w, b = torch.ones(32, device="cuda"), torch.zeros(32, device="cuda")
    y, mean, rstd = group_norm(x, 8, w, b)
    group_norm(x, 8, w, b, silu=False)
    group_norm_backward(torch.randn_like(y), x, 8, w, mean, rstd)
    tokens = torch.randn(2, 64, 256, device="cuda")
    shift, scale, gate = torch.randn(3, 2, 256, device="cuda").unbind(0)
    out = torch.empty_like(tokens)
    ada_layer_norm_kernel[(128,)](tokens, shift, scale, None, None, out, 64, 256, 1e-6, BLOCK=256)
    ada_layer_norm_kernel[(128,)](tokens, shift, scale, gate, tokens, out, 64, 256, 1e-6, BLOCK=256)
