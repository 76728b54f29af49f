"""A kernel that spills

64 live values a thread under maxnreg=64: occupancy is bought with spills. Try num_warps=8, or no limit.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def log_softmax_kernel(logits_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(logits_ptr + row * row_stride + columns, mask=mask, other=-float("inf")).to(tl.float32)
    shifted = x - tl.max(x, axis=0)
    y = shifted - tl.log(tl.sum(tl.exp(shifted), axis=0))
    tl.store(out_ptr + row * row_stride + columns, y, mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major matrix on the device: all of it that a launch reads."""

    shape: tuple[int, int]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def log_softmax(logits: Buffer, out: Buffer) -> None:
    n_rows, n_cols = logits.shape
    block = triton.next_power_of_2(n_cols)
    log_softmax_kernel[(n_rows,)](logits, out, n_cols, n_cols, BLOCK=block, num_warps=4, maxnreg=64)


if __name__ == "__main__":
    logits = Buffer((4096, 8000), tl.float16)
    out = Buffer((4096, 8000), tl.float32)
    log_softmax(logits, out)
