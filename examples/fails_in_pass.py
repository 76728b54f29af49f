"""A kernel that fails in a pass

2:4 pruning wants four neighbours a thread, its layout holds two: convert-triton-gpu-to-llvm gives up.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def keep_two_of_four(a, b, c, d):
    """Zero the two values of least magnitude; of equals the later one goes first."""
    p, q, r, s = tl.abs(a), tl.abs(b), tl.abs(c), tl.abs(d)
    above_a = (q > p).to(tl.int32) + (r > p).to(tl.int32) + (s > p).to(tl.int32)
    above_b = (p >= q).to(tl.int32) + (r > q).to(tl.int32) + (s > q).to(tl.int32)
    above_c = (p >= r).to(tl.int32) + (q >= r).to(tl.int32) + (s > r).to(tl.int32)
    above_d = (p >= s).to(tl.int32) + (q >= s).to(tl.int32) + (r >= s).to(tl.int32)
    return (
        tl.where(above_a < 2, a, 0.0),
        tl.where(above_b < 2, b, 0.0),
        tl.where(above_c < 2, c, 0.0),
        tl.where(above_d < 2, d, 0.0),
    )


@triton.jit
def prune_kernel(weight_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    weight = tl.load(weight_ptr + offsets)
    (pruned,) = tl.map_elementwise(keep_two_of_four, weight, pack=4)
    tl.store(out_ptr + offsets, pruned)


@dataclass(frozen=True)
class Buffer:
    """Stands for a contiguous tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def prune(weight: Buffer, out: Buffer) -> None:
    block = 256  # over the 128 threads of four warps; 512 compiles
    (n_elements,) = weight.shape
    prune_kernel[(n_elements // block,)](weight, out, BLOCK=block, num_warps=4)


if __name__ == "__main__":
    weight, out = (Buffer((1 << 20,), tl.float32) for _ in range(2))
    prune(weight, out)
