"""Causal attention, forward

Flash attention's online softmax: two dots a step, a running maximum and sum, and a mask on the diagonal only.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def attend(
    acc, row_sum, row_max, q, k_ptrs, v_ptrs, stride_token, offs_m, offs_n, first, last,
    BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):
    """Fold keys and values from ``first`` up to ``last`` into the running softmax."""
    k_ptrs += first * stride_token
    v_ptrs += first * stride_token
    for start in tl.range(first, last, BLOCK_N):
        scores = tl.dot(q, tl.load(k_ptrs))
        if MASKED:
            scores = tl.where(offs_m[:, None] >= start + offs_n[None, :], scores, -float("inf"))
        new_max = tl.maximum(row_max, tl.max(scores, axis=1))
        probabilities = tl.exp2(scores - new_max[:, None])
        rescale = tl.exp2(row_max - new_max)
        row_sum = row_sum * rescale + tl.sum(probabilities, axis=1)
        acc = tl.dot(probabilities.to(q.dtype), tl.load(v_ptrs), acc * rescale[:, None])
        row_max = new_max
        k_ptrs += BLOCK_N * stride_token
        v_ptrs += BLOCK_N * stride_token
    return acc, row_sum, row_max


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, scale, stride_head, stride_token, n_tokens,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    block = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    offs_m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    base = head * stride_head
    tile = offs_m[:, None] * stride_token + offs_d[None, :]
    k_ptrs = k_ptr + base + offs_n[None, :] * stride_token + offs_d[:, None]
    v_ptrs = v_ptr + base + offs_n[:, None] * stride_token + offs_d[None, :]

    # exp2 is one instruction and exp is not: log2(e) is folded into the scale.
    q = tl.load(q_ptr + base + tile)
    q = (q * (scale * 1.44269504)).to(q.dtype)
    row_max = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)

    diagonal = block * BLOCK_M
    acc, row_sum, row_max = attend(
        acc, row_sum, row_max, q, k_ptrs, v_ptrs, stride_token, offs_m, offs_n,
        0, diagonal, BLOCK_N, MASKED=False,
    )
    acc, row_sum, row_max = attend(
        acc, row_sum, row_max, q, k_ptrs, v_ptrs, stride_token, offs_m, offs_n,
        diagonal, diagonal + BLOCK_M, BLOCK_N, MASKED=True,
    )

    # The log-sum-exp, in base 2 like the rest, is what a backward pass starts from.
    tl.store(lse_ptr + head * n_tokens + offs_m, row_max + tl.log2(row_sum))
    out = acc / row_sum[:, None]
    tl.store(out_ptr + base + tile, out.to(out_ptr.dtype.element_ty))


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def attention(q: Buffer, k: Buffer, v: Buffer, out: Buffer, lse: Buffer) -> None:
    """Run over (heads, tokens, head_dim) tensors whose token count is a multiple of the block."""
    heads, tokens, head_dim = q.shape
    block_m = 128
    attention_kernel[(tokens // block_m, heads)](
        q, k, v, out, lse, head_dim**-0.5, tokens * head_dim, head_dim, tokens,
        HEAD_DIM=head_dim, BLOCK_M=block_m, BLOCK_N=64, num_warps=8, num_stages=3,
    )


if __name__ == "__main__":
    q, k, v, out = (Buffer((4 * 16, 4096, 128), tl.float16) for _ in range(4))
    lse = Buffer((4 * 16, 4096), tl.float32)
    attention(q, k, v, out, lse)
