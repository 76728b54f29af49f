"""Grouped matmul

Many sizes in one persistent launch: pointers come from memory, so their alignment is promised in the source.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def grouped_matmul_kernel(
    a_ptrs_ptr, b_ptrs_ptr, c_ptrs_ptr, sizes_ptr, n_groups, PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(0)
    tiles_before = 0
    for group in range(n_groups):
        M = tl.load(sizes_ptr + group * 3)
        N = tl.load(sizes_ptr + group * 3 + 1)
        K = tl.load(sizes_ptr + group * 3 + 2)
        tiles_n = tl.cdiv(N, BLOCK_N)
        tiles = tl.cdiv(M, BLOCK_M) * tiles_n
        # Without these promises no copy of a pass would be wider than one element.
        N = tl.multiple_of(N, 16)
        K = tl.multiple_of(K, 16)
        a_ptr = tl.multiple_of(tl.load(a_ptrs_ptr + group).to(tl.pointer_type(tl.float16)), 16)
        b_ptr = tl.multiple_of(tl.load(b_ptrs_ptr + group).to(tl.pointer_type(tl.float16)), 16)
        c_ptr = tl.multiple_of(tl.load(c_ptrs_ptr + group).to(tl.pointer_type(tl.float16)), 16)

        while tile < tiles_before + tiles:
            inside = tile - tiles_before
            offs_m = inside // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
            offs_n = inside % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
            offs_k = tl.arange(0, BLOCK_K)
            a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
            b_ptrs = b_ptr + offs_k[:, None] * N + offs_n[None, :]
            accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, K, BLOCK_K):
                a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K - k), other=0.0)
                b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k) & (offs_n[None, :] < N), other=0.0)
                accumulator = tl.dot(a, b, accumulator)
                a_ptrs += BLOCK_K
                b_ptrs += BLOCK_K * N
            mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
            tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], accumulator.to(tl.float16), mask=mask)
            tile += PROGRAMS
        tiles_before += tiles


@dataclass(frozen=True)
class Buffer:
    """Stands for a contiguous array on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def grouped_matmul(a_ptrs: Buffer, b_ptrs: Buffer, c_ptrs: Buffer, sizes: Buffer, programs: int = 132) -> None:
    """Multiply the matrices that the arrays of addresses lead to; ``sizes`` has M, N, K of each."""
    n_groups, _ = sizes.shape
    grouped_matmul_kernel[(programs,)](
        a_ptrs, b_ptrs, c_ptrs, sizes, n_groups, PROGRAMS=programs,
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, num_warps=8, num_stages=3,
    )


if __name__ == "__main__":
    a_ptrs, b_ptrs, c_ptrs = (Buffer((8,), tl.int64) for _ in range(3))
    sizes = Buffer((8, 3), tl.int32)
    grouped_matmul(a_ptrs, b_ptrs, c_ptrs, sizes)
