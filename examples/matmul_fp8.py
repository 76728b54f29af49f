"""Fp8 matmul with block scales

e4m3 goes straight into the tensor cores from sm_89 on; sm_80 has no such type, and the front end says so.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def fp8_matmul_kernel(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    steps = K // BLOCK_K
    # B is stored transposed, (N, K). A has a scale for each row and step, B one for each tile.
    a_ptrs = a_ptr + (offs_m % M)[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] + (offs_n % N)[None, :] * K
    a_scale_ptrs = a_scale_ptr + (offs_m % M) * steps
    b_scale_ptrs = b_scale_ptr + pid_n * steps

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(steps):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        scale = tl.load(a_scale_ptrs + step)[:, None] * tl.load(b_scale_ptrs + step)
        # Each step starts from zero, because its scale belongs to it alone.
        accumulator += tl.dot(a, b) * scale
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def fp8_matmul(a: Buffer, b: Buffer, a_scale: Buffer, b_scale: Buffer, c: Buffer) -> None:
    """Multiply matrices whose K is a multiple of 128, the extent of a scale."""
    (M, K), (N, _) = a.shape, b.shape
    block = 128
    fp8_matmul_kernel[(triton.cdiv(M, block), triton.cdiv(N, block))](
        a, b, a_scale, b_scale, c, M, N, K,
        BLOCK_M=block, BLOCK_N=block, BLOCK_K=block, num_warps=8, num_stages=3,
    )


if __name__ == "__main__":
    a, b = (Buffer((4096, 4096), tl.float8e4nv) for _ in range(2))
    a_scale, b_scale = Buffer((4096, 32), tl.float32), Buffer((32, 32), tl.float32)
    c = Buffer((4096, 4096), tl.bfloat16)
    fp8_matmul(a, b, a_scale, b_scale, c)
