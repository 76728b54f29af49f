"""Vector addition

The smallest whole kernel: see how masked loads of a 1,024-wide block become 128-bit accesses.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a contiguous tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def add(x: Buffer, y: Buffer, out: Buffer) -> None:
    (n_elements,) = x.shape
    block = 1024
    add_kernel[(triton.cdiv(n_elements, block),)](x, y, out, n_elements, BLOCK=block)


if __name__ == "__main__":
    x, y, out = (Buffer((98_432,), tl.float32) for _ in range(3))
    add(x, y, out)
