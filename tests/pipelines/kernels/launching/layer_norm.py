"""A layer norm as an autograd Function: backward launches two kernels, with locks and partial sums."""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    rstd = tl.rsqrt(tl.sum((x - mean) * (x - mean), axis=0) / n + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    y = (x - mean) * rstd * tl.load(w_ptr + at, mask=at < n) + tl.load(b_ptr + at, mask=at < n)
    tl.store(y_ptr + row * stride + at, y, mask=at < n)


@triton.jit
def backward_kernel(
    dx_ptr,
    dy_ptr,
    dw_ptr,
    db_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    lock_ptr,
    stride,
    n,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    dy = tl.load(dy_ptr + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(dx_ptr + row * stride + at, dy * tl.load(rstd_ptr + row), mask=at < n)
    group = row % GROUP
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    if tl.load(lock_ptr + GROUP + group) == 0:
        tl.atomic_xchg(lock_ptr + GROUP + group, 1)
    tl.store(dw_ptr + group * n + at, dy, mask=at < n)
    tl.store(db_ptr + group * n + at, dy, mask=at < n)
    tl.atomic_xchg(lock_ptr + group, 0)


@triton.jit
def weights_kernel(dw_ptr, db_ptr, final_dw_ptr, final_db_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    rows = tl.arange(0, BM)
    mask = (rows[:, None] < m) & (at[None, :] < n)
    tl.store(final_dw_ptr + at, tl.sum(tl.load(dw_ptr + rows[:, None] * n + at[None, :], mask=mask), axis=0), at < n)
    tl.store(final_db_ptr + at, tl.sum(tl.load(db_ptr + rows[:, None] * n + at[None, :], mask=mask), axis=0), at < n)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, normalized_shape, weight, bias, eps):
        y = torch.empty_like(x)
        flat = x.reshape(-1, x.shape[-1])
        M, N = flat.shape
        mean = torch.empty((M,), dtype=torch.float32, device=x.device)
        rstd = torch.empty((M,), dtype=torch.float32, device=x.device)
        limit = 65536 // x.element_size()
        block = min(limit, triton.next_power_of_2(N))
        if block < N:
            raise RuntimeError("This layer norm doesn't support feature dim >= 64KB.")
        warps = min(max(block // 256, 1), 8)
        forward_kernel[(M,)](flat, y, weight, bias, mean, rstd, flat.stride(0), N, eps, BLOCK=block, num_warps=warps)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.block, ctx.warps, ctx.eps = block, warps, eps
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, b, mean, rstd = ctx.saved_tensors
        N = w.shape[0]
        group = 256 if N <= 1024 else 128 if N <= 4096 else 64
        locks = torch.zeros(2 * group, dtype=torch.int32, device="cuda")
        partial_w = torch.zeros((group, N), dtype=x.dtype, device=w.device)
        partial_b = torch.zeros((group, N), dtype=x.dtype, device=w.device)
        dw, db = (torch.empty((N,), dtype=w.dtype, device=w.device) for _ in range(2))
        dx = torch.empty_like(dy)
        flat = x.reshape(-1, x.shape[-1])
        M, N = flat.shape
        backward_kernel[(M,)](
            dx,
            dy,
            partial_w,
            partial_b,
            x,
            w,
            mean,
            rstd,
            locks,
            flat.stride(0),
            N,
            BLOCK=ctx.block,
            GROUP=group,
            num_warps=ctx.warps,
        )
        weights_kernel[lambda meta: (triton.cdiv(N, meta["BN"]),)](
            partial_w, partial_b, dw, db, min(group, M), N, BM=32, BN=128, num_ctas=1
        )
        return dx, None, dw, db, None


layer_norm = LayerNorm.apply


def check(M, N, dtype, eps=1e-5, device="cuda"):
    x_shape = (M, N)
    weight = torch.rand((N,), dtype=dtype, device=device, requires_grad=True)
    bias = torch.rand((N,), dtype=dtype, device=device, requires_grad=True)
    x = -2.3 + 0.5 * torch.randn(x_shape, dtype=dtype, device=device)
    dy = 0.1 * torch.randn_like(x)
    x.requires_grad_(True)
    made = layer_norm(x, (N,), weight, bias, eps)
    expected = torch.nn.functional.layer_norm(x, (N,), weight, bias, eps).to(dtype)
    made.backward(dy, retain_graph=True)
    dx, dw, db = [item.grad.clone() for item in (x, weight, bias)]
    x.grad, weight.grad, bias.grad = None, None, None
    expected.backward(dy, retain_graph=True)
    assert torch.allclose(made, expected, atol=1e-2, rtol=0)
    for one, other in zip((dx, dw, db), (x.grad, weight.grad, bias.grad)):
        assert torch.allclose(one, other, atol=1e-2, rtol=0)


check(1151, 2048, torch.float16)
x = torch.randn(64, 1024, device="cuda", requires_grad=True)
w = torch.nn.Parameter(torch.ones(1024, device="cuda"))
layer_norm(x, (1024,), w, torch.zeros_like(w), 1e-5).view(8, 8, 1024).transpose(0, 1).sum().backward()
assert x.grad is not None
