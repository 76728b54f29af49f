"""Scans: sums and products, a linear recurrence and its reverse, segments, running extremes, one pass with looking back."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, n_cols, REVERSE: tl.constexpr, EXCLUSIVE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + at, mask=at < n_cols, other=0)
    y = tl.cumsum(x, 0, reverse=REVERSE)
    if EXCLUSIVE:
        y -= x
    tl.store(out_ptr + row * n_cols + at, y, mask=at < n_cols)


@triton.jit
def first_order_op(fl, xl, fr, xr):
    return fl * fr, xl * fr + xr


@triton.jit
def linear_recurrence_kernel(gates, tokens, outputs, L: tl.constexpr, REVERSE: tl.constexpr):
    base = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * L
    at = base + tl.arange(0, L)
    _, y = tl.associative_scan((tl.load(gates + at), tl.load(tokens + at)), 0, first_order_op, reverse=REVERSE)
    tl.store(outputs + at, y)


@triton.jit
def linear_recurrence_bwd_kernel(gates, outputs, dout, dgates, dtokens, L: tl.constexpr):
    base = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * L
    at = tl.arange(0, L)
    next_gate = tl.load(gates + base + at + 1, mask=at < L - 1, other=0.0)
    _, d = tl.associative_scan((next_gate, tl.load(dout + base + at)), 0, first_order_op, reverse=True)
    tl.store(dtokens + base + at, d)
    tl.store(dgates + base + at, d * tl.load(outputs + base + at - 1, mask=at > 0, other=0.0))


@triton.jit
def segmented_add(value_a, flag_a, value_b, flag_b):
    return tl.where(flag_b, value_b, value_a + value_b), flag_a | flag_b


@triton.jit
def segmented_sum_kernel(x_ptr, starts_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    starts = tl.load(starts_ptr + at, mask=at < n, other=1) != 0
    y, _ = tl.associative_scan((x, starts), axis=0, combine_fn=segmented_add)
    tl.store(out_ptr + at, y, mask=at < n)


@triton.jit
def larger_with_index(value_a, index_a, value_b, index_b):
    newer = value_b >= value_a
    return tl.where(newer, value_b, value_a), tl.where(newer, index_b, index_a)


@triton.jit
def cummax_kernel(x_ptr, values_ptr, indices_ptr, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    at = rows[:, None] * n_cols + cols[None, :]
    mask = (cols < n_cols)[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf"))
    index = tl.broadcast_to(cols[None, :], (BLOCK_M, BLOCK_N))
    values, indices = tl.associative_scan((x, index), 1, larger_with_index)
    tl.store(values_ptr + at, values, mask=mask)
    tl.store(indices_ptr + at, indices.to(tl.int64), mask=mask)


@triton.jit
def lookback_scan_kernel(x_ptr, out_ptr, state_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    """Each block waits for the sum of those before it, left in order."""
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    local = tl.cumsum(x, 0)
    before = 0.0
    if block > 0:
        while tl.atomic_add(flag_ptr + block - 1, 0, sem="acquire") == 0:
            pass
        before = tl.load(state_ptr + block - 1, volatile=True)
    tl.store(state_ptr + block, before + tl.sum(x, 0))
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + block, 1, sem="release")
    tl.store(out_ptr + at, before + local, mask=at < n)


@triton.jit
def cumprod_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.cumprod(tl.load(x_ptr + at), axis=0))


class Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gates, tokens):
        B, C, L = gates.shape
        states = torch.zeros_like(tokens)
        linear_recurrence_kernel[(B, C)](gates, tokens, states, L=L, REVERSE=False, enable_fp_fusion=False)
        ctx.save_for_backward(states, gates)
        return states

    @staticmethod
    def backward(ctx, grad_output):
        states, gates = ctx.saved_tensors
        B, C, L = gates.shape
        d_gates, d_tokens = torch.empty_like(gates), torch.empty_like(gates)
        linear_recurrence_bwd_kernel[(B, C)](gates, states, grad_output.contiguous(), d_gates, d_tokens, L=L)
        return d_gates, d_tokens


if __name__ == "__main__":
    x = torch.randn(4, 200, device="cuda")
    ints = torch.ones(4, 200, device="cuda", dtype=torch.int32)
    cumsum_kernel[(4,)](x, x, 200, REVERSE=False, EXCLUSIVE=False, BLOCK=256)
    cumsum_kernel[(4,)](ints, ints, 200, REVERSE=True, EXCLUSIVE=True, BLOCK=256)
    gates, tokens = (torch.rand(2, 3, 128, device="cuda", requires_grad=True) for _ in range(2))
    Scan.apply(gates, tokens).sum().backward()
    linear_recurrence_kernel[(2, 3)](gates, tokens, torch.empty_like(tokens), 128, REVERSE=True)
    segmented_sum_kernel[(4,)](x.half(), (x > 1).to(torch.int8), x, x.numel(), BLOCK=256)
    cummax_kernel[(1,)](x, torch.empty_like(x), torch.empty_like(x, dtype=torch.int64), 200, BLOCK_M=4, BLOCK_N=256)
    flags = torch.zeros(4, device="cuda", dtype=torch.int32)
    lookback_scan_kernel[(4,)](x, torch.empty_like(x), torch.empty(4, device="cuda"), flags, x.numel(), BLOCK=256)
    cumprod_kernel[(2,)](x, torch.empty_like(x), BLOCK=128)
