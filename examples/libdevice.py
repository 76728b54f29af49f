"""A libdevice call

An extern call through all of MLIR; LLVM links the vendor's bitcode, inlines it and folds its flags.
"""

from dataclasses import dataclass

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def to_normal_kernel(uniform_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """Turn uniform numbers of (0, 1) into normal ones."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    uniform = tl.load(uniform_ptr + offsets, mask=mask, other=0.5)
    normal = 1.41421356 * libdevice.erfinv(2.0 * uniform - 1.0)
    tl.store(out_ptr + offsets, normal, mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a contiguous tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def to_normal(uniform: Buffer, out: Buffer) -> None:
    (n_elements,) = uniform.shape
    block = 1024
    to_normal_kernel[(triton.cdiv(n_elements, block),)](uniform, out, n_elements, BLOCK=block)


if __name__ == "__main__":
    uniform, out = (Buffer((1 << 20,), tl.float32) for _ in range(2))
    to_normal(uniform, out)
