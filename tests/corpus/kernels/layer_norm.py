"""Layer norm in a module of its own: heuristics look at None arguments; the backward adds weight gradients under locks."""

import torch
import triton
import triton.language as tl


@triton.heuristics({"HAS_BIAS": lambda args: args["B"] is not None, "HAS_Z": lambda args: args["Z"] is not None})
@triton.jit
def layer_norm_fwd(
    X, Y, W, B, Z, Mean, Rstd, stride_row, N, eps,
    HAS_BIAS: tl.constexpr, HAS_Z: tl.constexpr, IS_RMS: tl.constexpr, BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0)
    X += row * stride_row
    Y += row * stride_row
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
    if HAS_Z:
        z = tl.load(Z + row * stride_row + cols, mask=mask).to(tl.float32)
        x *= z * tl.sigmoid(z)
    if IS_RMS:
        centred = tl.where(mask, x, 0.0)
    else:
        mean = tl.sum(x, axis=0) / N
        tl.store(Mean + row, mean)
        centred = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / N + eps)
    tl.store(Rstd + row, rstd)
    y = centred * rstd * tl.load(W + cols, mask=mask).to(tl.float32)
    if HAS_BIAS:
        y += tl.load(B + cols, mask=mask).to(tl.float32)
    tl.store(Y + cols, y, mask=mask)


@triton.jit
def layer_norm_bwd_dx(
    DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N, GROUP_SIZE_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    X += row * stride
    DY += row * stride
    DX += row * stride
    lock_id = row % GROUP_SIZE_M
    Lock += lock_id
    Count = Lock + GROUP_SIZE_M
    DW = DW + lock_id * N + cols
    DB = DB + lock_id * N + cols
    x = tl.load(X + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    rstd = tl.load(Rstd + row)
    xhat = tl.where(mask, (x - tl.load(Mean + row)) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(DX + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)

    partial_dw = (dy * xhat).to(w.dtype)
    partial_db = dy.to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        partial_dw += tl.load(DW, mask=mask)
        partial_db += tl.load(DB, mask=mask)
    tl.store(DW, partial_dw, mask=mask)
    tl.store(DB, partial_db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@triton.jit
def layer_norm_bwd_dwdb(DW, DB, FINAL_DW, FINAL_DB, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, M, BLOCK_M):
        rows = i + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        at = rows[:, None] * N + cols[None, :]
        dw += tl.load(DW + at, mask=mask, other=0.0)
        db += tl.load(DB + at, mask=mask, other=0.0)
    tl.store(FINAL_DW + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(FINAL_DB + cols, tl.sum(db, axis=0), mask=cols < N)


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        y = torch.empty_like(x)
        arg = x.reshape(-1, x.shape[-1])
        M, N = arg.shape
        mean = torch.empty((M,), dtype=torch.float32, device=x.device)
        rstd = torch.empty((M,), dtype=torch.float32, device=x.device)
        max_fused_size = 65536 // x.element_size()
        block = min(max_fused_size, triton.next_power_of_2(N))
        if block < N:
            raise RuntimeError("This layer norm doesn't support feature dim >= 64KB.")
        num_warps = min(max(block // 256, 1), 8)
        layer_norm_fwd[(M,)](
            arg, y, weight, bias, None, mean, rstd, arg.stride(0), N, eps, IS_RMS=False, BLOCK_N=block,
            num_warps=num_warps, num_ctas=1,
        )
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.block, ctx.num_warps = block, num_warps
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, bias, mean, rstd = ctx.saved_tensors
        N = weight.shape[0]
        groups = 64 if N > 1024 else 96
        locks = torch.zeros(2 * groups, dtype=torch.int32, device=weight.device)
        dw_parts = torch.zeros((groups, N), dtype=x.dtype, device=weight.device)
        db_parts = torch.zeros((groups, N), dtype=x.dtype, device=weight.device)
        dw = torch.empty((N,), dtype=weight.dtype, device=weight.device)
        db = torch.empty((N,), dtype=weight.dtype, device=weight.device)
        dx = torch.empty_like(dy)
        x_arg = x.reshape(-1, x.shape[-1])
        M, N = x_arg.shape
        layer_norm_bwd_dx[(M,)](
            dx, dy, dw_parts, db_parts, x, weight, mean, rstd, locks, x_arg.stride(0), N,
            BLOCK_N=ctx.block, GROUP_SIZE_M=groups, num_warps=ctx.num_warps,
        )
        grid = lambda meta: (triton.cdiv(N, meta["BLOCK_N"]),)
        layer_norm_bwd_dwdb[grid](
            dw_parts, db_parts, dw, db, min(groups, M), N, BLOCK_M=32, BLOCK_N=128, num_ctas=1
        )
        return dx, dw, db, None


class LayerNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-5, device=None, dtype=None):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim, device=device, dtype=dtype))
        self.bias = torch.nn.Parameter(torch.zeros(dim, device=device, dtype=dtype))
        self.eps = eps

    def forward(self, x):
        return _LayerNorm.apply(x, self.weight, self.bias, self.eps)


def gated_norm(x, z, weight):
    y = torch.empty_like(x)
    rstd = torch.empty(x.shape[0], device=x.device)
    layer_norm_fwd[(x.shape[0],)](
        x, y, weight, None, z, None, rstd, x.stride(0), x.shape[1], 1e-6, IS_RMS=True, BLOCK_N=512
    )
    return y


if __name__ == "__main__":
    norm = LayerNorm(384, device="cuda", dtype=torch.float16)
    x = torch.randn(8, 24, 384, device="cuda", dtype=torch.float16, requires_grad=True)
    y = norm(x)
    y.backward(torch.randn_like(y))
    flat = torch.randn(32, 500, device="cuda")
    gated_norm(flat, torch.randn_like(flat), torch.ones(500, device="cuda"))
