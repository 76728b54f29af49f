"""A loop over tensor descriptors whose loads and dots run in warps of their own; 64 rows a tile, since Triton 3.9 fails
on 128 for sm_90."""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def kernel(a_desc, b_desc, c_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=True, num_stages=2):
        a = a_desc.load([row, k * BK])
        b = b_desc.load([col, k * BK])
        acc = tl.dot(a, b.T, acc)
    c_desc.store([row, col], acc.to(tl.float16))


class Buffer:
    dtype = tl.float16
    shape = (1024, 1024)

    def data_ptr(self):
        return 0

    def stride(self):
        return (1024, 1)


if __name__ == "__main__":
    a, b, c = (TensorDescriptor(Buffer(), [1024, 1024], [1024, 1], block) for block in ([64, 64], [128, 64], [64, 128]))
    kernel[(8, 8)](a, b, c, 1024, BM=64, BN=128, BK=64, num_warps=4)
