"""Paged attention, decode

A block table says where keys lie: each step's addresses wait for a load of their own, which is pipelined too.
"""

from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def paged_decode_kernel(
    q_ptr, k_pages_ptr, v_pages_ptr, block_table_ptr, lengths_ptr, out_ptr, scale,
    stride_table, stride_page, stride_slot,
    GROUP: tl.constexpr, GROUP_PADDED: tl.constexpr, HEAD_DIM: tl.constexpr, PAGE: tl.constexpr,
):
    sequence = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    kv_heads = tl.num_programs(1)
    length = tl.load(lengths_ptr + sequence)

    # The query heads that share a key head are the rows of one dot, padded to the tensor cores' sixteen.
    offs_g = tl.arange(0, GROUP_PADDED)
    offs_d = tl.arange(0, HEAD_DIM)
    offs_t = tl.arange(0, PAGE)
    heads = (sequence * kv_heads + kv_head) * GROUP + offs_g
    tile = heads[:, None] * HEAD_DIM + offs_d[None, :]
    in_group = offs_g[:, None] < GROUP
    q = tl.load(q_ptr + tile, mask=in_group, other=0.0)

    row_max = tl.full((GROUP_PADDED,), -float("inf"), dtype=tl.float32)
    row_sum = tl.zeros((GROUP_PADDED,), dtype=tl.float32)
    acc = tl.zeros((GROUP_PADDED, HEAD_DIM), dtype=tl.float32)
    for index in range(tl.cdiv(length, PAGE)):
        page = tl.load(block_table_ptr + sequence * stride_table + index).to(tl.int64)
        base = page * stride_page + kv_head * HEAD_DIM
        filled = index * PAGE + offs_t < length
        slots = base + offs_t[:, None] * stride_slot + offs_d[None, :]
        k = tl.load(k_pages_ptr + slots, mask=filled[:, None], other=0.0)
        v = tl.load(v_pages_ptr + slots, mask=filled[:, None], other=0.0)
        scores = tl.dot(q, k.T) * (scale * 1.44269504)
        scores = tl.where(filled[None, :], scores, -float("inf"))
        new_max = tl.maximum(row_max, tl.max(scores, axis=1))
        probabilities = tl.exp2(scores - new_max[:, None])
        rescale = tl.exp2(row_max - new_max)
        row_sum = row_sum * rescale + tl.sum(probabilities, axis=1)
        acc = tl.dot(probabilities.to(v.dtype), v, acc * rescale[:, None])
        row_max = new_max

    out = acc / row_sum[:, None]
    tl.store(out_ptr + tile, out.to(out_ptr.dtype.element_ty), mask=in_group)


@dataclass(frozen=True)
class Buffer:
    """Stands for a row-major tensor on the device: all of it that a launch reads."""

    shape: tuple[int, ...]
    dtype: tl.dtype

    def data_ptr(self) -> int:
        return 0


def paged_decode(
    q: Buffer, k_pages: Buffer, v_pages: Buffer, block_table: Buffer, lengths: Buffer, out: Buffer
) -> None:
    """Attend with one token a sequence over (pages, slots, key heads, head_dim); no sequence is empty."""
    sequences, heads, head_dim = q.shape
    _, page, kv_heads, _ = k_pages.shape
    group = heads // kv_heads
    paged_decode_kernel[(sequences, kv_heads)](
        q, k_pages, v_pages, block_table, lengths, out, head_dim**-0.5,
        block_table.shape[1], page * kv_heads * head_dim, kv_heads * head_dim,
        GROUP=group, GROUP_PADDED=max(16, triton.next_power_of_2(group)), HEAD_DIM=head_dim, PAGE=page,
        num_warps=4, num_stages=3,
    )


if __name__ == "__main__":
    q, out = (Buffer((64, 32, 128), tl.bfloat16) for _ in range(2))
    k_pages, v_pages = (Buffer((4096, 64, 8, 128), tl.bfloat16) for _ in range(2))
    block_table = Buffer((64, 128), tl.int32)
    lengths = Buffer((64,), tl.int32)
    paged_decode(q, k_pages, v_pages, block_table, lengths, out)
