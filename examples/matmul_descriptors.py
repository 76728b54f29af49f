"""Matmul with tensor descriptors

One source, three lowerings: pointers and cp.async on sm_80, TMA with wgmma on sm_90, with tcgen05 on sm_100.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    # B is stored transposed, (N, K), so that both operands are contiguous along K.
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])

    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    pid_m, pid_n = tl.swizzle2d(
        tl.program_id(0) // tiles_n, tl.program_id(0) % tiles_n, tiles_m, tiles_n, GROUP_M
    )
    row = pid_m * BLOCK_M
    column = pid_n * BLOCK_N

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([row, k])
        b = b_desc.load([column, k])
        accumulator = tl.dot(a, b.T, accumulator)
    c_desc.store([row, column], accumulator.to(c_ptr.dtype.element_ty))


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def matmul(a: Buffer, b: Buffer, c: Buffer) -> None:
    (M, K), (N, _) = a.shape, b.shape
    block_m, block_n = 128, 128
    # Descriptors made on the device live in scratch memory that the launch allocates.
    triton.set_allocator(lambda size, *_: Buffer((size,), tl.int8))
    matmul_kernel[(triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)](
        a, b, c, M, N, K,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=3,
    )


if __name__ == "__main__":
    a, b, c = (Buffer((4096, 4096), tl.float16) for _ in range(3))
    matmul(a, b, c)
