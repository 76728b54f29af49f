"""Cross entropy with its gradient

A vocabulary too wide for registers: one loop for an online log-sum-exp, one to overwrite it by gradients.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, loss_ptr, row_stride, n_cols, ignored, inverse_count, BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * row_stride
    target = tl.load(target_ptr + row)
    if target == ignored:
        for start in range(0, n_cols, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            tl.store(logits_ptr + columns, 0.0, mask=columns < n_cols)
        tl.store(loss_ptr + row, 0.0)
        return

    row_max = -float("inf")
    row_sum = 0.0
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + columns, mask=columns < n_cols, other=-float("inf")).to(tl.float32)
        new_max = tl.maximum(row_max, tl.max(x, axis=0))
        row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(x - new_max), axis=0)
        row_max = new_max
    log_sum_exp = row_max + tl.log(row_sum)
    loss = log_sum_exp - tl.load(logits_ptr + target).to(tl.float32)
    tl.store(loss_ptr + row, loss * inverse_count)

    # All threads have read the target's logit before any of them overwrites it.
    tl.debug_barrier()
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n_cols
        x = tl.load(logits_ptr + columns, mask=mask, other=-float("inf")).to(tl.float32)
        gradient = tl.exp(x - log_sum_exp) - tl.where(columns == target, 1.0, 0.0)
        tl.store(logits_ptr + columns, (gradient * inverse_count).to(logits_ptr.dtype.element_ty), mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def cross_entropy(logits: Buffer, target: Buffer, loss: Buffer, ignored: int = -100) -> None:
    """Write each row's share of the mean loss, and the gradient in the logits' place."""
    n_rows, n_cols = logits.shape
    cross_entropy_kernel[(n_rows,)](
        logits, target, loss, n_cols, n_cols, ignored, 1.0 / n_rows, BLOCK=4096, num_warps=8
    )


if __name__ == "__main__":
    logits = Buffer((8192, 128_256), tl.bfloat16)
    target = Buffer((8192,), tl.int64)
    loss = Buffer((8192,), tl.float32)
    cross_entropy(logits, target, loss)
