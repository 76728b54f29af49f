"""Int8 matmul

Integers add up exactly in int32; scales of rows and columns are applied once, after the loop.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def int8_matmul_kernel(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    # B is stored transposed, (N, K): 8-bit operands must be contiguous along K for the tensor cores.
    a_ptrs = a_ptr + (offs_m % M)[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] + (offs_n % N)[None, :] * K

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k, other=0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    a_scale = tl.load(a_scale_ptr + offs_m, mask=offs_m < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + offs_n, mask=offs_n < N, other=0.0)
    c = accumulator.to(tl.float32) * a_scale[:, None] * b_scale[None, :]
    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptrs, c.to(c_ptr.dtype.element_ty), mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def int8_matmul(a: Buffer, b: Buffer, a_scale: Buffer, b_scale: Buffer, c: Buffer) -> None:
    (M, K), (N, _) = a.shape, b.shape
    block_m, block_n = 128, 128
    int8_matmul_kernel[(triton.cdiv(M, block_m), triton.cdiv(N, block_n))](
        a, b, a_scale, b_scale, c, M, N, K,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=128, num_warps=8, num_stages=3,
    )


if __name__ == "__main__":
    a, b = (Buffer((4096, 4096), tl.int8) for _ in range(2))
    a_scale, b_scale = (Buffer((4096,), tl.float32) for _ in range(2))
    c = Buffer((4096, 4096), tl.bfloat16)
    int8_matmul(a, b, a_scale, b_scale, c)
