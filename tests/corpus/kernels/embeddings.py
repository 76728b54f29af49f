"""Embeddings: looking rows up, adding gradients with atomics, bags with optional weights; a one-hot product."""

import torch
import triton
import triton.language as tl


@triton.jit
def embedding_forward_kernel(table_ptr, ids_ptr, out_ptr, n_ids, dim: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    mask_m = offs_m < n_ids
    ids = tl.load(ids_ptr + offs_m, mask=mask_m, other=0)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = mask_m[:, None] & (offs_n < dim)[None, :]
    rows = tl.load(table_ptr + ids[:, None] * dim + offs_n[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + offs_m[:, None] * dim + offs_n[None, :], rows, mask=mask)


@triton.jit
def embedding_backward_kernel(dout_ptr, ids_ptr, dtable_ptr, n_ids, padding_idx, dim: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    ids = tl.load(ids_ptr + offs_m, mask=offs_m < n_ids, other=padding_idx)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = ((offs_m < n_ids) & (ids != padding_idx))[:, None] & (offs_n < dim)[None, :]
    grad = tl.load(dout_ptr + offs_m[:, None] * dim + offs_n[None, :], mask=mask, other=0.0)
    tl.atomic_add(dtable_ptr + ids[:, None] * dim + offs_n[None, :], grad, mask=mask)


@triton.jit
def embedding_bag_kernel(table_ptr, ids_ptr, offsets_ptr, weights_ptr, out_ptr, dim, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    bag = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    start = tl.load(offsets_ptr + bag)
    end = tl.load(offsets_ptr + bag + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(start, end):
        row = tl.load(table_ptr + tl.load(ids_ptr + i) * dim + cols, mask=cols < dim, other=0.0).to(tl.float32)
        if weights_ptr is not None:
            row *= tl.load(weights_ptr + i)
        total += row
    if MEAN:
        total /= tl.maximum(end - start, 1).to(tl.float32)
    tl.store(out_ptr + bag * dim + cols, total, mask=cols < dim)


@triton.jit
def position_embedding_kernel(x_ptr, tokens_ptr, token_table, position_table, out_ptr, length, DIM: tl.constexpr):
    token = tl.program_id(0)
    cols = tl.arange(0, DIM)
    row = tl.load(token_table + tl.load(tokens_ptr + token) * DIM + cols)
    row += tl.load(position_table + token % length * DIM + cols)
    if x_ptr is not None:
        row += tl.load(x_ptr + token * DIM + cols)
    tl.store(out_ptr + token * DIM + cols, row)


class Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, ids):
        shape, dim = ids.shape, table.shape[1]
        ids = ids.view(-1)
        out = torch.empty(ids.shape[0], dim, device=ids.device, dtype=table.dtype)
        embedding_forward_kernel[(triton.cdiv(ids.numel(), 16), triton.cdiv(dim, 64))](table, ids, out, ids.numel(), dim=dim, BLOCK_M=16, BLOCK_N=64)
        ctx.save_for_backward(ids, table)
        return out.view(*shape, -1)

    @staticmethod
    def backward(ctx, dout):
        ids, table = ctx.saved_tensors
        dim = table.shape[1]
        dtable = torch.zeros_like(table)
        embedding_backward_kernel[(triton.cdiv(ids.numel(), 16), triton.cdiv(dim, 64))](
            dout.contiguous().view(-1, dim), ids, dtable, ids.numel(), -1, dim=dim, BLOCK_M=16, BLOCK_N=64
        )
        return dtable, None


if __name__ == "__main__":
    table = torch.randn(100, 96, device="cuda", requires_grad=True)
    ids = torch.randint(0, 100, (2, 20), device="cuda")
    Embedding.apply(table, ids).sum().backward()
    offsets = torch.tensor([0, 5, 5, 40], device="cuda")
    out = torch.empty(3, 96, device="cuda")
    embedding_bag_kernel[(3,)](table.half(), ids, offsets, None, out, 96, MEAN=True, BLOCK=128)
    embedding_bag_kernel[(3,)](table, ids.int(), offsets.int(), torch.rand(40, device="cuda"), out, 96, MEAN=False, BLOCK=128)
    wide = torch.randn(100, 128, device="cuda", dtype=torch.bfloat16)
    position_embedding_kernel[(40,)](None, ids, wide, wide, torch.empty(40, 128, device="cuda", dtype=torch.bfloat16), 20, DIM=128)
