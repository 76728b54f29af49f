"""A kernel that fails in ptxas

Inline assembly is opaque to every pass: PTX has no half-precision rsqrt, and only ptxas says so.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def rsqrt_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.inline_asm_elementwise(
        "rsqrt.approx.f16 $0, $1;", "=h,h", [x], dtype=tl.float16, is_pure=True, pack=1
    )
    tl.store(out_ptr + offsets, y, mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a contiguous tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def rsqrt(x: Buffer, out: Buffer) -> None:
    (n_elements,) = x.shape
    block = 1024
    rsqrt_kernel[(triton.cdiv(n_elements, block),)](x, out, n_elements, BLOCK=block)


if __name__ == "__main__":
    x, out = (Buffer((1 << 20,), tl.float16) for _ in range(2))
    rsqrt(x, out)
