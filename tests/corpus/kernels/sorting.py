"""Sorting: rows, indices through packed keys, a bitonic network by hand, ranks of segments, radix digits."""

import torch
import triton
import triton.language as tl


@triton.jit
def sort_rows_kernel(x_ptr, out_ptr, n_cols, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    fill = -float("inf") if DESCENDING else float("inf")
    x = tl.load(x_ptr + row * n_cols + at, mask=at < n_cols, other=fill)
    tl.store(out_ptr + row * n_cols + at, tl.sort(x, descending=DESCENDING), mask=at < n_cols)


@triton.jit
def order_preserving_bits(x):
    bits = x.to(tl.uint32, bitcast=True)
    return tl.where(bits >> 31 != 0, ~bits, bits | 0x80000000)


@triton.jit
def argsort_kernel(x_ptr, index_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + at, mask=at < n_cols, other=float("inf"))
    packed = (order_preserving_bits(x).to(tl.uint64) << 32) | at.to(tl.uint64)
    packed = tl.sort(packed)
    tl.store(index_ptr + row * n_cols + at, (packed & 0xFFFFFFFF).to(tl.int64), mask=at < n_cols)


@triton.jit
def compare_and_swap(x, ids, flip, i: tl.constexpr, n_dims: tl.constexpr):
    n_outer: tl.constexpr = x.numel >> n_dims
    shape: tl.constexpr = [n_outer * 2**i, 2, 2 ** (n_dims - i - 1)]
    y = tl.reshape(x, shape)
    idx = tl.reshape(ids, shape)
    right = tl.arange(0, 2)[None, :, None]
    left_value = tl.broadcast_to(tl.sum(y * (1 - right), 1)[:, None, :], shape)
    right_value = tl.broadcast_to(tl.sum(y * right, 1)[:, None, :], shape)
    left_id = tl.broadcast_to(tl.sum(idx * (1 - right), 1)[:, None, :], shape)
    right_id = tl.broadcast_to(tl.sum(idx * right, 1)[:, None, :], shape)
    swap = (left_value > right_value) != tl.reshape(flip, shape)
    y = tl.where(swap, tl.where(right == 1, left_value, right_value), y)
    idx = tl.where(swap, tl.where(right == 1, left_id, right_id), idx)
    return tl.reshape(y, x.shape), tl.reshape(idx, ids.shape)


@triton.jit
def bitonic_merge_step(x, ids, stage: tl.constexpr, order: tl.constexpr, n_dims: tl.constexpr):
    n_outer: tl.constexpr = x.numel >> n_dims
    if order == 2:
        shape: tl.constexpr = [n_outer * 2 ** (n_dims - 1 - stage), 2, 2**stage]
        flip = tl.reshape(tl.broadcast_to(tl.arange(0, 2)[None, :, None], shape), x.shape) != 0
        for i in tl.static_range(stage):
            x, ids = compare_and_swap(x, ids, flip, i + (n_dims - stage), n_dims)
    else:
        for i in tl.static_range(stage):
            x, ids = compare_and_swap(x, ids, tl.full(x.shape, order, tl.int32) != 0, i + (n_dims - stage), n_dims)
    return x, ids


@triton.jit
def argsort_bitonic_kernel(x_ptr, out_ptr, ids_ptr, N: tl.constexpr, LOG: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * N + at)
    ids = at
    for i in tl.static_range(1, LOG + 1):
        x, ids = bitonic_merge_step(x, ids, i, 2 if i < LOG else 0, LOG)
    tl.store(out_ptr + tl.program_id(0) * N + at, x)
    tl.store(ids_ptr + tl.program_id(0) * N + at, ids)


@triton.jit
def rank_kernel(keys_ptr, rank_ptr, n, BLOCK: tl.constexpr):
    mine = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(keys_ptr + mine, mask=mine < n, other=0)
    rank = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, BLOCK):
        other = start + tl.arange(0, BLOCK)
        theirs = tl.load(keys_ptr + other, mask=other < n, other=2147483647)
        before = (theirs[None, :] < key[:, None]) | ((theirs[None, :] == key[:, None]) & (other[None, :] < mine[:, None]))
        rank += tl.sum((before & (other < n)[None, :]).to(tl.int32), 1)
    tl.store(rank_ptr + mine, rank, mask=mine < n)


@triton.jit
def radix_digit_kernel(keys_ptr, hist_ptr, n, shift: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    digit = (tl.load(keys_ptr + at, mask=at < n, other=0) >> shift) & ((1 << BITS) - 1)
    counts = tl.histogram(digit.to(tl.int32), 1 << BITS, mask=at < n)
    tl.store(hist_ptr + tl.program_id(0) * (1 << BITS) + tl.arange(0, 1 << BITS), counts)


if __name__ == "__main__":
    x = torch.randn(8, 100, device="cuda")
    for descending in (False, True):
        sort_rows_kernel[(8,)](x, torch.empty_like(x), 100, DESCENDING=descending, BLOCK=128)
    sort_rows_kernel[(8,)](x.half(), x.half(), 100, True, 128)
    argsort_kernel[(8,)](x, torch.empty(8, 100, dtype=torch.long, device="cuda"), 100, BLOCK=128)
    y = torch.randn(4, 32, device="cuda")
    argsort_bitonic_kernel[(4,)](y, torch.empty_like(y), torch.empty(4, 32, dtype=torch.int32, device="cuda"), N=32, LOG=5, num_warps=1)
    keys = torch.randint(0, 1 << 20, (500,), device="cuda", dtype=torch.int32)
    rank_kernel[(8,)](keys, torch.empty_like(keys), 500, BLOCK=64)
    for shift in range(0, 16, 8):
        radix_digit_kernel[(2,)](keys, torch.empty(2, 256, dtype=torch.int32, device="cuda"), 500, shift, BITS=8, BLOCK=256)
