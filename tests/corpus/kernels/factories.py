"""Kernels that are made: by factories, inside functions, for a dtype or an operation; kept in tables, launched by name."""

import functools

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

LOG2_E = tl.constexpr(1.4426950408889634)
UNROLL = tl.constexpr(2)


def make_unary(operation):
    @triton.jit
    def unary_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(y_ptr + at, operation(x), mask=at < n)

    return unary_kernel


@triton.jit
def exp_base_2(x):
    return tl.exp2(x * LOG2_E)


@triton.jit
def mish(x):
    return x * libdevice.tanh(tl.log(1 + exp_base_2(x)))


@triton.jit
def square(x):
    return x * x


KERNELS = {name: make_unary(op) for name, op in (("exp", exp_base_2), ("mish", mish), ("square", square))}


def make_reduction(combine, identity):
    start = tl.constexpr(identity)

    @triton.jit
    def reduce_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        acc = tl.full((BLOCK,), start, tl.float32)
        for i in range(0, n_cols, BLOCK * UNROLL):
            for j in tl.static_range(UNROLL):
                at = i + j * BLOCK + tl.arange(0, BLOCK)
                acc = combine(acc, tl.load(x_ptr + row * n_cols + at, mask=at < n_cols, other=start))
        tl.store(out_ptr + row, tl.reduce(acc, 0, combine))

    return reduce_kernel


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def largest(a, b):
    return tl.maximum(a, b)


@triton.jit
def logaddexp(a, b):
    most = tl.maximum(a, b)
    return tl.where(most == -float("inf"), most, most + tl.log(tl.exp(a - most) + tl.exp(b - most)))


REDUCTIONS = (make_reduction(add, 0.0), make_reduction(largest, -float("inf")), make_reduction(logaddexp, -float("inf")))


@triton.jit
def argmax_combine(value_a, index_a, value_b, index_b):
    better = (value_a > value_b) | ((value_a == value_b) & (index_a < index_b))
    return tl.where(better, value_a, value_b), tl.where(better, index_a, index_b)


@triton.jit
def argmax_kernel(x_ptr, values_ptr, indices_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + at, mask=at < n_cols, other=-float("inf"))
    value, index = tl.reduce((x, at), 0, argmax_combine)
    tl.store(values_ptr + row, value)
    tl.store(indices_ptr + row, index)


@functools.lru_cache
def compiled_for(multiple):
    """A kernel whose text knows a number of its maker's."""
    factor = tl.constexpr(multiple)

    @triton.jit
    def scale_kernel(x_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)

    return scale_kernel


@triton.jit
def sum_all_kernel(out_ptr, n, pointers, scales, BLOCK: tl.constexpr):
    """Any number of inputs, as tuples."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(len(pointers)):
        total += tl.load(pointers[i] + at, mask=at < n, other=0.0).to(tl.float32) * scales[i]
    tl.store(out_ptr + at, total, mask=at < n)


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, n, OP: tl.constexpr, REVERSED: tl.constexpr = False, BLOCK: tl.constexpr = 256):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, OP(y, x) if REVERSED else OP(x, y), mask=at < n)


if __name__ == "__main__":
    x = torch.rand(4, 300, device="cuda")
    n = x.numel()
    grid = (triton.cdiv(n, 256),)
    for name in ("exp", "mish", "square"):
        KERNELS[name][grid](x, torch.empty_like(x), n, BLOCK=256)
    out = torch.empty(4, device="cuda")
    for kernel in REDUCTIONS:
        kernel[(4,)](x, out, 300, BLOCK=128)
    argmax_kernel[(4,)](x, out, torch.empty(4, dtype=torch.int32, device="cuda"), 300, BLOCK=512)
    for multiple in (2, 3, 2):
        compiled_for(multiple)[grid](x, n, BLOCK=256)
    sum_all_kernel[grid](x, n, (x, x.half()), (1.0, 0.5), BLOCK=256)
    sum_all_kernel[grid](x, n, (x,), (2.0,), BLOCK=256)
    launch = functools.partial(binary_kernel[grid], x, x, x, n)
    launch(OP=add)
    launch(OP=largest, REVERSED=True, num_warps=8)
    launch(OP=tl.minimum)
