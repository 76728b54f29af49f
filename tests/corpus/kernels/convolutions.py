"""Convolutions: implicit matmul over NHWC, depthwise, pooling, and unfolding; shapes are constexprs or not."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv2d_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr, N, H, W, C, OUT_H, OUT_W, K,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, DILATION: tl.constexpr,
    BLOCK_NHW: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_K: tl.constexpr,
):
    nhw = tl.program_id(0) * BLOCK_NHW + tl.arange(0, BLOCK_NHW)
    k = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    n = nhw // (OUT_H * OUT_W)
    oh = nhw // OUT_W % OUT_H
    ow = nhw % OUT_W
    acc = tl.zeros((BLOCK_NHW, BLOCK_K), tl.float32)
    for r in range(R):
        for s in range(S):
            ih = oh * STRIDE - PAD + r * DILATION
            iw = ow * STRIDE - PAD + s * DILATION
            inside = (n < N) & (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
            for first in range(0, C, BLOCK_C):
                c = first + tl.arange(0, BLOCK_C)
                x = tl.load(x_ptr + ((n * H + ih) * W + iw)[:, None] * C + c[None, :], mask=inside[:, None] & (c < C)[None, :], other=0.0)
                w = tl.load(w_ptr + ((k * R + r) * S + s)[None, :] * C + c[:, None], mask=(c < C)[:, None] & (k < K)[None, :], other=0.0)
                acc = tl.dot(x, w, acc, allow_tf32=True)
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + k, mask=k < K, other=0.0)[None, :]
    mask = (n < N)[:, None] & (k < K)[None, :]
    tl.store(y_ptr + nhw[:, None] * K + k[None, :], acc.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def depthwise_conv2d_kernel(x_ptr, w_ptr, y_ptr, H, W, OUT_W, KERNEL: tl.constexpr, BLOCK: tl.constexpr):
    plane, row = tl.program_id(0), tl.program_id(1)
    col = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(KERNEL):
        for j in tl.static_range(KERNEL):
            w = tl.load(w_ptr + (plane * KERNEL + i) * KERNEL + j)
            acc += w * tl.load(x_ptr + (plane * H + row + i) * W + col + j, mask=col < OUT_W, other=0.0)
    tl.store(y_ptr + (plane * tl.num_programs(1) + row) * OUT_W + col, acc, mask=col < OUT_W)


@triton.jit
def max_pool2d_kernel(x_ptr, y_ptr, index_ptr, H, W, OUT_H, OUT_W, WINDOW: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < OUT_H * OUT_W
    top = at // OUT_W * STRIDE
    left = at % OUT_W * STRIDE
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    where = tl.zeros((BLOCK,), tl.int64)
    for i in range(WINDOW):
        for j in range(WINDOW):
            index = (top + i) * W + left + j
            x = tl.load(x_ptr + plane * H * W + index, mask=mask & (top + i < H) & (left + j < W), other=float("-inf"))
            better = x > best
            where = tl.where(better, index.to(tl.int64), where)
            best = tl.where(better, x, best)
    tl.store(y_ptr + plane * OUT_H * OUT_W + at, best, mask=mask)
    if index_ptr is not None:
        tl.store(index_ptr + plane * OUT_H * OUT_W + at, where, mask=mask)


@triton.jit
def im2col_kernel(x_ptr, out_ptr, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, R: tl.constexpr, BLOCK: tl.constexpr):
    OUT_H: tl.constexpr = H - R + 1
    OUT_W: tl.constexpr = W - R + 1
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    element = at % (C * R * R)
    position = at // (C * R * R)
    c, r, s = element // (R * R), element // R % R, element % R
    x = tl.load(x_ptr + (c * H + position // OUT_W + r) * W + position % OUT_W + s, mask=position < OUT_H * OUT_W)
    tl.store(out_ptr + at, x, mask=position < OUT_H * OUT_W)


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1):
    n, h, w, c = x.shape
    k, r, s, _ = weight.shape
    out_h = (h + 2 * padding - dilation * (r - 1) - 1) // stride + 1
    out_w = (w + 2 * padding - dilation * (s - 1) - 1) // stride + 1
    y = torch.empty(n, out_h, out_w, k, device=x.device, dtype=x.dtype)
    grid = lambda meta: (triton.cdiv(n * out_h * out_w, meta["BLOCK_NHW"]), triton.cdiv(k, meta["BLOCK_K"]))
    conv2d_kernel[grid](x, weight, bias, y, n, h, w, c, out_h, out_w, k, r, s, stride, padding, dilation, 32, 16, 32)
    return y


if __name__ == "__main__":
    x = torch.randn(2, 14, 14, 32, device="cuda", dtype=torch.float16)
    conv2d(x, torch.randn(48, 3, 3, 32, device="cuda", dtype=torch.float16), padding=1)
    conv2d(x.float(), torch.randn(16, 1, 1, 32, device="cuda"), bias=torch.zeros(16, device="cuda"), stride=2)
    planes = torch.randn(8, 20, 20, device="cuda")
    depthwise_conv2d_kernel[(8, 18)](planes, torch.randn(8, 3, 3, device="cuda"), torch.empty(8, 18, 18, device="cuda"), 20, 20, 18, KERNEL=3, BLOCK=32)
    pooled = torch.empty(8, 10, 10, device="cuda")
    for index in (None, torch.empty(8, 10, 10, device="cuda", dtype=torch.int64)):
        max_pool2d_kernel[(8, 1)](planes, pooled, index, 20, 20, 10, 10, WINDOW=2, STRIDE=2, BLOCK=128)
    im2col_kernel[(triton.cdiv(8 * 9 * 18 * 18, 512),)](planes, torch.empty(324, 72, device="cuda"), 8, 20, 20, 3, BLOCK=512)
