"""Sparse and irregular: rows of CSR, blocks, sums by segment, histograms, counting into bins, locks, graph edges."""

import torch
import triton
import triton.language as tl


@triton.jit
def spmv_csr_kernel(row_ptr, col_ptr, value_ptr, x_ptr, y_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start, end = tl.load(row_ptr + row), tl.load(row_ptr + row + 1)
    acc = tl.zeros((BLOCK,), tl.float32)
    for first in range(start, end, BLOCK):
        at = first + tl.arange(0, BLOCK)
        col = tl.load(col_ptr + at, mask=at < end, other=0)
        acc += tl.load(value_ptr + at, mask=at < end, other=0.0) * tl.load(x_ptr + col, mask=at < end, other=0.0)
    tl.store(y_ptr + row, tl.sum(acc))


@triton.jit
def block_sparse_matmul_kernel(values, x, y, block_row, block_col, N, B: tl.constexpr, BN: tl.constexpr):
    """A block of a BSR matrix times its rows of x; rows of y are shared, so they are added to."""
    block = tl.program_id(0)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, B)
    a = tl.load(values + block * B * B + inner[:, None] * B + inner[None, :])
    b = tl.load(x + (tl.load(block_col + block) * B + inner)[:, None] * N + cols[None, :], mask=(cols < N)[None, :], other=0.0)
    at = y + (tl.load(block_row + block) * B + inner)[:, None] * N + cols[None, :]
    tl.atomic_add(at, tl.dot(a, b), mask=(cols < N)[None, :], sem="relaxed")


@triton.jit
def segment_softmax_kernel(scores_ptr, offsets_ptr, out_ptr, MAX: tl.constexpr):
    segment = tl.program_id(0)
    start = tl.load(offsets_ptr + segment)
    length = tl.load(offsets_ptr + segment + 1) - start
    tl.device_assert(length <= MAX, "a segment is longer than the block")
    at = tl.arange(0, MAX)
    x = tl.load(scores_ptr + start + at, mask=at < length, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + start + at, e / tl.sum(e, 0), mask=at < length)


@triton.jit
def bincount_kernel(ids_ptr, weights_ptr, counts_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + at, mask=at < n, other=0)
    if weights_ptr is None:
        counts = tl.histogram(ids, BINS, mask=at < n)
        tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts)
    else:
        tl.atomic_add(counts_ptr + ids, tl.load(weights_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def edge_relax_kernel(source_ptr, target_ptr, weight_ptr, distance_ptr, changed_ptr, n_edges, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n_edges
    source = tl.load(source_ptr + at, mask=mask, other=0)
    candidate = tl.load(distance_ptr + source, mask=mask) + tl.load(weight_ptr + at, mask=mask)
    before = tl.atomic_min(distance_ptr + tl.load(target_ptr + at, mask=mask, other=0), candidate, mask=mask)
    tl.atomic_or(changed_ptr, tl.max((mask & (candidate < before)).to(tl.int32)))


if __name__ == "__main__":
    rows = torch.tensor([0, 3, 3, 10], device="cuda", dtype=torch.int32)
    cols = torch.randint(0, 8, (10,), device="cuda", dtype=torch.int32)
    spmv_csr_kernel[(3,)](rows, cols, torch.randn(10, device="cuda"), torch.randn(8, device="cuda"), torch.empty(3, device="cuda"), BLOCK=32)
    spmv_csr_kernel[(3,)](rows.long(), cols.long(), torch.randn(10, device="cuda"), torch.randn(8, device="cuda"), torch.empty(3, device="cuda"), BLOCK=32)
    blocks = torch.randn(4, 16, 16, device="cuda", dtype=torch.bfloat16)
    where = torch.tensor([0, 1, 1, 2], device="cuda")
    block_sparse_matmul_kernel[(4, 1)](blocks, torch.randn(64, 32, device="cuda", dtype=torch.bfloat16), torch.zeros(64, 32, device="cuda"), where, where, 32, B=16, BN=32)
    segment_softmax_kernel[(3,)](torch.randn(10, device="cuda"), rows, torch.empty(10, device="cuda"), MAX=16, debug=True)
    counts = torch.zeros(16, device="cuda", dtype=torch.int32)
    bincount_kernel[(1,)](cols, None, counts, 10, BINS=16, BLOCK=64)
    bincount_kernel[(1,)](cols, torch.rand(10, device="cuda"), torch.zeros(16, device="cuda"), 10, BINS=16, BLOCK=64)
    distance = torch.full((8,), 1 << 20, device="cuda", dtype=torch.int32)
    edge_relax_kernel[(1,)](cols, cols, cols, distance, torch.zeros(1, dtype=torch.int32, device="cuda"), 10, BLOCK=32)
