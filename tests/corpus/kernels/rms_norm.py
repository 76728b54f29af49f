"""RMS norm with an optional weight and residual, its backward, and a gated variant, behind autograd functions."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_fwd_kernel(
    X, RES, W, Y, RSTD, stride_x_row, stride_y_row, n_cols, eps,
    OFFSET: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_RESIDUAL: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(X + row * stride_x_row + cols, mask=mask, other=0.0).to(tl.float32)
    if HAS_RESIDUAL:
        x += tl.load(RES + row * stride_x_row + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(RES + row * stride_x_row + cols, x.to(RES.dtype.element_ty), mask=mask)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x) / n_cols + eps)
    tl.store(RSTD + row, rstd)
    y = x * rstd
    if HAS_WEIGHT:
        y *= tl.load(W + cols, mask=mask).to(tl.float32) + OFFSET
    tl.store(Y + row * stride_y_row + cols, y.to(Y.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm_bwd_kernel(
    DY, X, W, RSTD, DX, DW, stride_row, n_rows, n_cols, rows_per_program,
    OFFSET: tl.constexpr, HAS_WEIGHT: tl.constexpr, BLOCK: tl.constexpr,
):
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    if HAS_WEIGHT:
        w = tl.load(W + cols, mask=mask, other=0.0).to(tl.float32) + OFFSET
    first = pid * rows_per_program
    for row in range(first, min(first + rows_per_program, n_rows)):
        x = tl.load(X + row * stride_row + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(DY + row * stride_row + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(RSTD + row)
        normed = x * rstd
        if HAS_WEIGHT:
            dw += dy * normed
            dy = dy * w
        dx = rstd * (dy - normed * (tl.sum(dy * normed) / n_cols))
        tl.store(DX + row * stride_row + cols, dx.to(DX.dtype.element_ty), mask=mask)
    if HAS_WEIGHT:
        tl.store(DW + pid * n_cols + cols, dw, mask=mask)


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n_cols"])})
@triton.jit
def gated_rms_norm_kernel(
    X, Z, W, Y, stride_x, stride_z, stride_y, n_cols, eps,
    NORM_BEFORE_GATE: tl.constexpr, SIGMOID_GATE: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    group = tl.program_id(1)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    at = group * n_cols + cols
    x = tl.load(X + row * stride_x + at, mask=mask, other=0.0).to(tl.float32)
    z = tl.load(Z + row * stride_z + at, mask=mask, other=0.0).to(tl.float32)
    gate = tl.sigmoid(z) if SIGMOID_GATE else z * tl.sigmoid(z)
    if not NORM_BEFORE_GATE:
        x *= gate
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps) * tl.load(W + at, mask=mask, other=0.0).to(tl.float32)
    if NORM_BEFORE_GATE:
        y *= gate
    tl.store(Y + row * stride_y + at, y, mask=mask)


class RMSNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, residual, eps, offset):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        n_rows, n_cols = x.shape
        y = torch.empty_like(x)
        rstd = torch.empty(n_rows, dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(n_cols)
        rms_norm_fwd_kernel[(n_rows,)](
            x, residual, weight, y, rstd, x.stride(0), y.stride(0), n_cols, eps,
            OFFSET=offset, HAS_WEIGHT=weight is not None, HAS_RESIDUAL=residual is not None, BLOCK=block,
            num_warps=4 if block < 2048 else 8,
        )
        ctx.save_for_backward(x, weight, rstd)
        ctx.offset, ctx.shape = offset, shape
        return y.view(shape)

    @staticmethod
    def backward(ctx, dy):
        x, weight, rstd = ctx.saved_tensors
        n_rows, n_cols = x.shape
        dy = dy.contiguous().view(n_rows, n_cols)
        dx = torch.empty_like(x)
        programs = min(8, n_rows)
        parts = torch.empty((programs, n_cols), dtype=torch.float32, device=x.device) if weight is not None else None
        rms_norm_bwd_kernel[(programs,)](
            dy, x, weight, rstd, dx, parts, x.stride(0), n_rows, n_cols, triton.cdiv(n_rows, programs),
            OFFSET=ctx.offset, HAS_WEIGHT=weight is not None, BLOCK=triton.next_power_of_2(n_cols),
        )
        dw = parts.sum(0).to(weight.dtype) if weight is not None else None
        return dx.view(ctx.shape), dw, None, None, None


def rms_norm(x, weight=None, residual=None, eps=1e-6, offset=0.0):
    return RMSNormFunction.apply(x, weight, residual, eps, offset)


def gated_rms_norm(x, z, weight, groups=1, eps=1e-5, norm_before_gate=True, sigmoid=False):
    rows, cols = x.shape
    y = torch.empty_like(x)
    gated_rms_norm_kernel[(rows, groups)](
        x, z, weight, y, x.stride(0), z.stride(0), y.stride(0), cols // groups, eps,
        NORM_BEFORE_GATE=norm_before_gate, SIGMOID_GATE=sigmoid,
    )
    return y


if __name__ == "__main__":
    x = torch.randn(4, 16, 512, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    weight = torch.ones(512, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    rms_norm(x, weight).sum().backward()
    rms_norm(x, weight, residual=torch.zeros_like(x), offset=1.0)
    rms_norm(x)
    flat = x.detach().view(-1, 512)
    gated_rms_norm(flat, torch.randn_like(flat), weight)
    gated_rms_norm(flat, torch.randn_like(flat), weight, groups=2, norm_before_gate=False, sigmoid=True)
