"""Moving data: transposing, permuting, concatenating, padding, flipping, gathering, unfolding a window of heads."""

import torch
import triton
import triton.language as tl


@triton.jit
def permute_0213_kernel(x_ptr, y_ptr, A, B, C, D: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_C: tl.constexpr):
    b = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    d = tl.arange(0, D)
    a = tl.program_id(2)
    mask = (b < B)[:, None, None] & (c < C)[None, :, None]
    x = tl.load(x_ptr + ((a * B + b)[:, None, None] * C + c[None, :, None]) * D + d[None, None, :], mask=mask)
    y = tl.permute(x, (1, 0, 2))
    out = ((a * C + c)[:, None, None] * B + b[None, :, None]) * D + d[None, None, :]
    tl.store(y_ptr + out, y, mask=tl.permute(mask, (1, 0, 2)))


@triton.jit
def cat_kernel(first_ptr, second_ptr, out_ptr, FIRST: tl.constexpr, SECOND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    from_first = at < FIRST
    x = tl.load(first_ptr + row * FIRST + at, mask=from_first, other=0.0)
    y = tl.load(second_ptr + row * SECOND + at - FIRST, mask=(at >= FIRST) & (at < FIRST + SECOND), other=0.0)
    tl.store(out_ptr + row * (FIRST + SECOND) + at, tl.where(from_first, x, y), mask=at < FIRST + SECOND)


@triton.jit
def pad_unpad_kernel(packed_ptr, padded_ptr, cu_ptr, dim, max_len, UNPAD: tl.constexpr, BLOCK: tl.constexpr):
    batch, token = tl.program_id(0), tl.program_id(1)
    start, end = tl.load(cu_ptr + batch), tl.load(cu_ptr + batch + 1)
    for first in range(0, dim, BLOCK):
        at = first + tl.arange(0, BLOCK)
        padded = padded_ptr + (batch * max_len + token) * dim + at
        packed = packed_ptr + (start + token) * dim + at
        inside = (token < end - start) & (at < dim)
        if UNPAD:
            tl.store(packed, tl.load(padded, mask=inside), mask=inside)
        else:
            tl.store(padded, tl.load(packed, mask=inside, other=0.0), mask=at < dim)


@triton.jit
def flip_and_interleave_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.flip(tl.load(x_ptr + at), 0)
    y = tl.load(y_ptr + at)
    both = tl.interleave(x, y)
    tl.store(out_ptr + tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK), both)


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr, PICKED: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :])
    at = tl.arange(0, PICKED)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    tl.store(out_ptr + at, tl.gather(x, tl.load(index_ptr + at), axis=AXIS))


@triton.jit
def scatter_rows_kernel(src_ptr, index_ptr, dst_ptr, stride_src: tl.int64, stride_dst: tl.int64, dim, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    target = tl.load(index_ptr + row)
    value = tl.load(src_ptr + row * stride_src + at, mask=at < dim)
    tl.store(dst_ptr + target * stride_dst + at, value, mask=(at < dim) & (target >= 0), cache_modifier=".cs")


@triton.jit
def strided_copy_kernel(x_ptr, y_ptr, shape, x_strides, y_strides, numel, BLOCK: tl.constexpr):
    """Shapes and strides are tuples, so that any rank has one kernel."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rest = at
    x_at = tl.zeros((BLOCK,), tl.int32)
    y_at = tl.zeros((BLOCK,), tl.int32)
    for dimension in tl.static_range(len(shape) - 1, -1, -1):
        index = rest % shape[dimension]
        rest = rest // shape[dimension]
        x_at += index * x_strides[dimension]
        y_at += index * y_strides[dimension]
    tl.store(y_ptr + y_at, tl.load(x_ptr + x_at, mask=at < numel), mask=at < numel)


if __name__ == "__main__":
    x = torch.randn(2, 40, 8, 32, device="cuda", dtype=torch.half)
    permute_0213_kernel[(3, 1, 2)](x, torch.empty(2, 8, 40, 32, device="cuda", dtype=torch.half), 2, 40, 8, D=32, BLOCK_B=16, BLOCK_C=8)
    rows = torch.randn(16, 48, device="cuda")
    cat_kernel[(16,)](rows, torch.randn(16, 80, device="cuda"), torch.empty(16, 128, device="cuda"), 48, 80, BLOCK=128)
    cu = torch.tensor([0, 7, 20], dtype=torch.int32, device="cuda")
    packed, padded = torch.randn(20, 48, device="cuda"), torch.empty(2, 13, 48, device="cuda")
    for unpad in (False, True):
        pad_unpad_kernel[(2, 13)](packed, padded, cu, 48, 13, UNPAD=unpad, BLOCK=64)
    flip_and_interleave_kernel[(2,)](rows, rows, torch.empty(512, device="cuda"), BLOCK=128)
    index = torch.zeros(16, 64, dtype=torch.int32, device="cuda")
    gather_kernel[(1,)](torch.randn(32, 64, device="cuda"), index, torch.empty(16, 64, device="cuda"), 32, 64, 16, AXIS=0)
    scatter_rows_kernel[(20, 1)](packed, torch.arange(20, device="cuda"), packed, 48, packed.stride(0), 48, BLOCK=64)
    y = torch.empty(8, 2, 40, 32, device="cuda", dtype=torch.half).permute(1, 2, 0, 3)
    strided_copy_kernel[(40,)](x, y, x.shape, x.stride(), y.stride(), x.numel(), BLOCK=512)
    flat = torch.empty_like(rows).t()
    strided_copy_kernel[(2,)](rows.t(), flat, tuple(flat.shape), flat.stride(), rows.t().stride(), rows.numel(), BLOCK=512)
