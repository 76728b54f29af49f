"""Causal attention, backward

Probabilities are computed anew from the log-sum-exp: five dots a step, operands transposed in shared memory.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def row_dots_kernel(out_ptr, dout_ptr, delta_ptr, BLOCK_M: tl.constexpr, HEAD_DIM: tl.constexpr):
    """Compute what softmax's gradient subtracts in each row: the sum of out * dout."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets = rows[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    out = tl.load(out_ptr + offsets).to(tl.float32)
    dout = tl.load(dout_ptr + offsets).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(out * dout, axis=1))


@triton.jit
def key_value_gradients_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, n_tokens,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):
    first = tl.program_id(0) * BLOCK_N
    head = tl.program_id(1).to(tl.int64) * n_tokens
    offs_n = first + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    tile_n = (head + offs_n)[:, None] * HEAD_DIM + offs_d[None, :]
    k = tl.load(k_ptr + tile_n)
    v = tl.load(v_ptr + tile_n)
    dk = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)

    # Rows above the diagonal see none of these keys.
    for start in range(first // BLOCK_M * BLOCK_M, n_tokens, BLOCK_M):
        offs_m = start + tl.arange(0, BLOCK_M)
        tile_m = (head + offs_m)[:, None] * HEAD_DIM + offs_d[None, :]
        q = tl.load(q_ptr + tile_m)
        dout = tl.load(dout_ptr + tile_m)
        scores = tl.dot(k, q.T) * (scale * 1.44269504)
        probabilities = tl.exp2(scores - tl.load(lse_ptr + head + offs_m)[None, :])
        probabilities = tl.where(offs_m[None, :] >= offs_n[:, None], probabilities, 0.0)
        dv = tl.dot(probabilities.to(dout.dtype), dout, dv)
        dprobabilities = tl.dot(v, dout.T)
        dscores = probabilities * (dprobabilities - tl.load(delta_ptr + head + offs_m)[None, :])
        dk = tl.dot(dscores.to(q.dtype), q, dk)

    tl.store(dk_ptr + tile_n, (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + tile_n, dv.to(dv_ptr.dtype.element_ty))


@triton.jit
def query_gradient_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, scale, n_tokens,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * n_tokens
    offs_m = first + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    tile_m = (head + offs_m)[:, None] * HEAD_DIM + offs_d[None, :]
    q = tl.load(q_ptr + tile_m)
    dout = tl.load(dout_ptr + tile_m)
    lse = tl.load(lse_ptr + head + offs_m)
    delta = tl.load(delta_ptr + head + offs_m)
    dq = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)

    for start in range(0, first + BLOCK_M, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        tile_n = (head + offs_n)[:, None] * HEAD_DIM + offs_d[None, :]
        k = tl.load(k_ptr + tile_n)
        v = tl.load(v_ptr + tile_n)
        scores = tl.dot(q, k.T) * (scale * 1.44269504)
        probabilities = tl.exp2(scores - lse[:, None])
        probabilities = tl.where(offs_m[:, None] >= offs_n[None, :], probabilities, 0.0)
        dscores = probabilities * (tl.dot(dout, v.T) - delta[:, None])
        dq = tl.dot(dscores.to(k.dtype), k, dq)

    tl.store(dq_ptr + tile_m, (dq * scale).to(dq_ptr.dtype.element_ty))


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def attention_backward(
    q: Buffer, k: Buffer, v: Buffer, out: Buffer, dout: Buffer, lse: Buffer, dq: Buffer, dk: Buffer, dv: Buffer
) -> None:
    """Run over (heads, tokens, head_dim) tensors whose token count is a multiple of the blocks; lse is in base 2."""
    heads, tokens, head_dim = q.shape
    scale = head_dim**-0.5
    delta = Buffer((heads, tokens), tl.float32)
    row_dots_kernel[(heads * tokens // 128,)](out, dout, delta, BLOCK_M=128, HEAD_DIM=head_dim)
    key_value_gradients_kernel[(tokens // 128, heads)](
        q, k, v, dout, lse, delta, dk, dv, scale, tokens,
        BLOCK_M=32, BLOCK_N=128, HEAD_DIM=head_dim, num_warps=8, num_stages=3,
    )
    query_gradient_kernel[(tokens // 128, heads)](
        q, k, v, dout, lse, delta, dq, scale, tokens,
        BLOCK_M=128, BLOCK_N=32, HEAD_DIM=head_dim, num_warps=4, num_stages=3,
    )


if __name__ == "__main__":
    q, k, v, out, dout, dq, dk, dv = (Buffer((4 * 16, 4096, 64), tl.float16) for _ in range(8))
    lse = Buffer((4 * 16, 4096), tl.float32)
    attention_backward(q, k, v, out, dout, lse, dq, dk, dv)
