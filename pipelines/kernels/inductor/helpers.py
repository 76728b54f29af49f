"""Stands for ``torch._inductor.runtime.triton_helpers``: the device functions that Inductor's kernels call.

Written after what each is for; those with work between programs (decoupled look-back, grid barriers) and sorting are
left to the real module, which is used where torch is installed.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice as libdevice

math = tl.math


def set_driver_to_gpu() -> None:
    """There is no driver to choose."""


def set_driver_to_cpu() -> None:
    """There is no driver to choose."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"torch._inductor.runtime.triton_helpers.{name} is not in Loupe's stand-in; "
        'install the torch extra, pip install "loupe[torch]", to compile this kernel'
    )


@triton.jit
def promote_to_tensor(x):
    """Make a scalar a block of one element."""
    return x + tl.zeros((1,), tl.int1)


@triton.jit
def is_floating(x):
    """Say whether the element type is a float."""
    return promote_to_tensor(x).dtype.is_floating()


@triton.jit
def div_floor_integer(a, b):
    """Divide towards minus infinity; Triton's ``//`` goes towards zero."""
    quotient = a // b
    below = tl.where(a % b != 0, quotient - 1, quotient)
    return tl.where((a < 0) != (b < 0), below, quotient)


@triton.jit
def remainder_integer(a, b):
    """Return the remainder with the divisor's sign."""
    remainder = a % b
    return tl.where((remainder != 0) & ((a < 0) != (b < 0)), remainder + b, remainder)


@triton.jit
def minimum(a, b):
    """Return the smaller; NaN wins."""
    taken = a < b
    if is_floating(a):
        taken |= a != a
    return tl.where(taken, a, b)


@triton.jit
def maximum(a, b):
    """Return the larger; NaN wins."""
    taken = a > b
    if is_floating(a):
        taken |= a != a
    return tl.where(taken, a, b)


@triton.jit
def min2(a, dim):
    """Reduce to the smallest."""
    return tl.reduce(a, dim, minimum)


@triton.jit
def max2(a, dim):
    """Reduce to the largest."""
    return tl.reduce(a, dim, maximum)


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def prod(input, axis):  # noqa: A002 - the name that kernels may pass it by
    """Reduce to the product."""
    return tl.reduce(input, axis, _multiply)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def any(a, dim):  # noqa: A001 - the name that kernels call
    """Say whether any element is true."""
    return tl.reduce(a, dim, _either)


@triton.jit
def _earlier(better, a_value, a_index, b_value, b_index):
    """Take the better of two, NaN before all, the first of equals."""
    taken = better
    equal = a_value == b_value
    if is_floating(a_value):
        a_nan = a_value != a_value
        b_nan = b_value != b_value
        taken |= a_nan & ~b_nan
        equal |= a_nan & b_nan
    taken |= equal & (a_index < b_index)
    return tl.where(taken, a_value, b_value), tl.where(taken, a_index, b_index)


@triton.jit
def minimum_with_index(a_value, a_index, b_value, b_index):
    """Return the smaller with its index."""
    return _earlier(a_value < b_value, a_value, a_index, b_value, b_index)


@triton.jit
def maximum_with_index(a_value, a_index, b_value, b_index):
    """Return the larger with its index."""
    return _earlier(a_value > b_value, a_value, a_index, b_value, b_index)


@triton.jit
def min_with_index(value, index, dim):
    """Reduce to the smallest and its index."""
    return tl.reduce((value, index), dim, minimum_with_index)


@triton.jit
def max_with_index(value, index, dim):
    """Reduce to the largest and its index."""
    return tl.reduce((value, index), dim, maximum_with_index)


@triton.jit
def exp(x, use_fast_math: tl.constexpr):
    """Return e to the x, by the hardware's power of two where speed is asked for."""
    if use_fast_math:
        return tl.exp2(x * 1.4426950408889634)
    else:
        return tl.exp(x)


@triton.jit
def online_softmax_combine(lhs_max, lhs_sum, rhs_max, use_fast_math: tl.constexpr):
    """Add one element to a running maximum and sum of exponentials."""
    out_max = maximum(lhs_max, rhs_max)
    lhs_scale = tl.where(out_max == float("-inf"), 1.0, exp(lhs_max - out_max, use_fast_math))
    rhs_scale = tl.where(out_max == float("-inf"), 1.0, exp(rhs_max - out_max, use_fast_math))
    return out_max, lhs_sum * lhs_scale + rhs_scale


@triton.jit
def online_softmax_reduce(lhs_max, lhs_sum, dim, use_fast_math: tl.constexpr):
    """Reduce running maxima and sums of exponentials to one of each."""
    out_max = max2(lhs_max, dim)
    kept = tl.expand_dims(out_max, dim)
    delta = tl.where(kept == float("-inf"), 0.0, lhs_max - kept)
    return out_max, tl.sum(lhs_sum * exp(delta, use_fast_math), dim)


@triton.jit
def welford_reduce(value, mean, m2, weight, first_iteration):
    """Add one element to a running mean and sum of squared differences (Welford 1962)."""
    if first_iteration:
        new_weight = tl.full(weight.shape, 1, weight.dtype)
        new_mean = value
        new_m2 = tl.zeros_like(m2)
    else:
        delta = value - mean
        new_weight = weight + 1
        new_mean = mean + delta / new_weight
        new_m2 = m2 + delta * (value - new_mean)
    return new_mean, new_m2, new_weight


@triton.jit
def welford_combine(mean_1, m2_1, weight_1, mean_2, m2_2, weight_2):
    """Join two running means (Chan, Golub and LeVeque 1979)."""
    delta = mean_2 - mean_1
    weight = weight_1 + weight_2
    share = tl.where(weight == 0.0, 0.0, weight_2 / weight)
    return mean_1 + delta * share, m2_1 + m2_2 + delta * delta * weight_1 * share, weight


@triton.jit
def welford(mean, m2, weight, dim):
    """Reduce running means to one."""
    return tl.reduce((mean, m2, weight), dim, welford_combine)


@triton.jit
def device_assert_then(cond, msg, r):
    """Assert on the device and return ``r``."""
    tl.device_assert(cond, msg)
    return r


@triton.jit
def randint64(seed, offset, low, high):
    """Return a 64-bit integer in [low, high)."""
    r0, r1, _, _ = tl.randint4x(seed, offset)
    whole = r0.to(tl.uint64) | (r1.to(tl.uint64) << 32)
    return (whole % (high - low).to(tl.uint64)).to(tl.int64) + low


@triton.jit
def select_one(x, mask, dim, keep_dims=False):
    """Return the one element of a row that the mask keeps."""
    bits = tl.core.get_int_dtype(x.dtype.primitive_bitwidth, signed=False)
    kept = tl.sum(x.to(bits, bitcast=True) * mask.to(bits), dim, keep_dims=keep_dims)
    return kept.to(bits).to(x.dtype, bitcast=True)


@triton.jit
def frexp(x):
    """Split into mantissa and exponent."""
    power = libdevice.ilogb(x) + 1
    return tl.where(x == 0, 0, libdevice.ldexp(x, -power)), tl.where(x == 0, 0, power)


@triton.jit
def bucketize_binary_search(
    values, boundaries_ptr, BOUNDARIES_SIZE, BOUNDARIES_UNDERLYING_NUMEL, BOUNDARIES_STRIDE, boundary_indices,
    indexing_dtype, right, sorter_ptr, SORTER_STRIDE, sorter_indices,
):  # fmt: skip
    """Return the bucket of each value among sorted boundaries."""
    low = tl.zeros(values.shape, dtype=indexing_dtype)
    high = tl.full(values.shape, BOUNDARIES_SIZE, dtype=indexing_dtype)
    full_range = BOUNDARIES_SIZE + 1
    while full_range > 1:
        mid = (high + low) // 2
        inside = (mid * BOUNDARIES_STRIDE + boundary_indices < BOUNDARIES_UNDERLYING_NUMEL) & (mid < BOUNDARIES_SIZE)
        if sorter_ptr is None:
            place = mid
        else:
            place = tl.load(sorter_ptr + sorter_indices + SORTER_STRIDE * mid, mask=inside, other=0)
        bound = tl.load(boundaries_ptr + boundary_indices + BOUNDARIES_STRIDE * place, mask=inside, other=0)
        above = values >= bound if right else values > bound
        low = tl.where(above & inside, mid + 1, low)
        high = tl.where(above, high, mid)
        full_range = (full_range + 1) // 2
    return low
