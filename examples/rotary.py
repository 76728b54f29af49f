"""Rotary embedding

Pairs that lie side by side are split and joined in registers: a thread holds both, so nothing is exchanged.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def rotary_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, n_tokens, HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK: tl.constexpr,
):
    tokens = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1)
    mask = tokens[:, None] < n_tokens
    offs_d = tl.arange(0, HEAD_DIM)
    offs_pair = tl.arange(0, HEAD_DIM // 2)

    offsets = (tokens[:, None] * HEADS + head) * HEAD_DIM + offs_d[None, :]
    x = tl.load(x_ptr + offsets, mask=mask)
    angles = tokens[:, None] * (HEAD_DIM // 2) + offs_pair[None, :]
    cos = tl.load(cos_ptr + angles, mask=mask)
    sin = tl.load(sin_ptr + angles, mask=mask)

    even, odd = tl.split(tl.reshape(x, (BLOCK, HEAD_DIM // 2, 2)))
    turned = tl.join(even * cos - odd * sin, even * sin + odd * cos)
    out = tl.reshape(turned, (BLOCK, HEAD_DIM))
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


@dataclass(frozen=True)
class Buffer:
    """Stands for a contiguous tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def rotary(x: Buffer, cos: Buffer, sin: Buffer, out: Buffer) -> None:
    """Turn (tokens, heads, head_dim) by angles whose (tokens, head_dim / 2) cosines and sines are given."""
    tokens, heads, head_dim = x.shape
    block = 32
    rotary_kernel[(triton.cdiv(tokens, block), heads)](
        x, cos, sin, out, tokens, HEADS=heads, HEAD_DIM=head_dim, BLOCK=block, num_warps=4
    )


if __name__ == "__main__":
    x, out = (Buffer((8192, 32, 128), tl.bfloat16) for _ in range(2))
    cos, sin = (Buffer((8192, 64), tl.float32) for _ in range(2))
    rotary(x, cos, sin, out)
