"""Losses over a vocabulary: cross entropy with smoothing and softcap, divergences with their gradients, preference losses."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

_REDUCTIONS = {"none": tl.constexpr(0), "sum": tl.constexpr(1), "mean": tl.constexpr(2), "batchmean": tl.constexpr(3)}
REDUCTION_NONE: tl.constexpr = _REDUCTIONS["none"]
REDUCTION_SUM: tl.constexpr = _REDUCTIONS["sum"]


@triton.jit
def cross_entropy_kernel(
    X_ptr, X_stride, Y_ptr, Y_stride, weight_ptr, loss_ptr, z_loss_ptr, n_cols, n_non_ignore, ignore_index,
    lse_square_scale: tl.constexpr, label_smoothing: tl.constexpr, reduction: tl.constexpr, softcap,
    RETURN_Z_LOSS: tl.constexpr, BLOCK_SIZE: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_SOFTCAPPING: tl.constexpr,
):
    program_id = tl.program_id(0).to(tl.int64)
    y = tl.load(Y_ptr + program_id * Y_stride)
    X_ptr += program_id * X_stride
    if y == ignore_index:
        for i in range(0, n_cols, BLOCK_SIZE):
            at = i + tl.arange(0, BLOCK_SIZE)
            tl.store(X_ptr + at, 0.0, mask=at < n_cols)
        return
    m = float("-inf")
    d = 0.0
    scaled_x_sum = 0.0
    eps = label_smoothing / n_cols
    ori_x_y = tl.load(X_ptr + y).cast(tl.float32)
    if HAS_SOFTCAPPING:
        ori_x_y = softcap * libdevice.tanh(ori_x_y / softcap)
    if HAS_WEIGHT:
        weight_y = tl.load(weight_ptr + y).cast(tl.float32)
    for i in range(0, n_cols, BLOCK_SIZE):
        at = i + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X_ptr + at, mask=at < n_cols, other=float("-inf")).cast(tl.float32)
        if HAS_SOFTCAPPING:
            x = softcap * libdevice.tanh(x / softcap)
        if label_smoothing > 0:
            scaled_x_sum += tl.sum(tl.where(at < n_cols, -eps * x, 0.0))
        m_new = tl.maximum(m, tl.max(x))
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    lse = m + tl.log(d)
    for i in range(0, n_cols, BLOCK_SIZE):
        at = i + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X_ptr + at, mask=at < n_cols, other=float("-inf")).cast(tl.float32)
        if HAS_SOFTCAPPING:
            inner = libdevice.tanh(x / softcap)
            x = softcap * inner
        x = tl.exp(x - m) / d
        x += 2 * lse_square_scale * lse * x
        x += -eps
        x = tl.where(at != y, x, x - (1 - label_smoothing))
        if HAS_WEIGHT:
            x *= weight_y
        if reduction == "mean":
            x = x / n_non_ignore
        if HAS_SOFTCAPPING:
            x = x * (1 - inner * inner)
        tl.store(X_ptr + at, x, mask=at < n_cols)
    tl.debug_barrier()
    loss = lse - ori_x_y
    if label_smoothing > 0:
        loss = loss * (1 - label_smoothing) + scaled_x_sum + label_smoothing * lse
    z_loss = lse_square_scale * lse * lse
    if reduction == "mean":
        z_loss = z_loss / n_non_ignore
        loss = loss / n_non_ignore
    tl.store(loss_ptr + program_id, loss + z_loss)
    if RETURN_Z_LOSS:
        tl.store(z_loss_ptr + program_id, z_loss)


@triton.jit
def kl_div_forward_kernel(
    y_ptr, gt_ptr, loss_ptr, stride, n_cols, eps, BLOCK: tl.constexpr,
    log_target: tl.constexpr = False, reduction: tl.constexpr = REDUCTION_SUM,
):
    pid = tl.program_id(0).to(tl.int64)
    y_ptr += pid * stride
    gt_ptr += pid * stride
    loss_sum = 0.0
    for i in range(0, n_cols, BLOCK):
        at = i + tl.arange(0, BLOCK)
        mask = at < n_cols
        y = tl.load(y_ptr + at, mask=mask, other=0.0)
        y_true = tl.load(gt_ptr + at, mask=mask, other=0.0)
        if not log_target:
            loss = y_true * (tl.log(tl.maximum(y_true, eps)) - y)
        else:
            loss = tl.exp(y_true) * (y_true - y)
        if reduction == REDUCTION_NONE:
            tl.store(loss_ptr + pid * stride + at, loss, mask=mask)
        else:
            loss_sum += tl.sum(loss, axis=0)
    if reduction != REDUCTION_NONE:
        tl.store(loss_ptr + pid, loss_sum)


@triton.jit
def kl_div_backward_kernel(target_ptr, grad_ptr, stride, n_cols, BLOCK: tl.constexpr, log_target: tl.constexpr = False):
    pid = tl.program_id(0).to(tl.int64)
    for i in range(0, n_cols, BLOCK):
        at = i + tl.arange(0, BLOCK)
        mask = at < n_cols
        target = tl.load(target_ptr + pid * stride + at, mask=mask, other=0.0)
        gradient = target * -1 if not log_target else -tl.exp(target)
        tl.store(grad_ptr + pid * stride + at, gradient, mask=mask)


@triton.jit
def jsd_kernel(
    X_ptr, Y_ptr, loss_ptr, dX_ptr, label_ptr, beta: tl.constexpr, n_non_ignore: int, ignore_index: tl.constexpr,
    n_cols, BLOCK: tl.constexpr, HAS_LABEL: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    base = pid * n_cols
    if HAS_LABEL:
        if tl.load(label_ptr + pid) == ignore_index:
            for i in range(0, n_cols, BLOCK):
                at = i + tl.arange(0, BLOCK)
                tl.store(dX_ptr + base + at, 0.0, mask=at < n_cols)
            return
    scale = 1.0 / n_non_ignore
    for i in range(0, n_cols, BLOCK):
        at = i + tl.arange(0, BLOCK)
        mask = at < n_cols
        x = tl.load(X_ptr + base + at, mask=mask, other=float("-inf")).to(tl.float32)
        y = tl.load(Y_ptr + base + at, mask=mask, other=float("-inf")).to(tl.float32)
        if beta == 0.0:
            p = tl.exp(y)
            loss = p * (y - x)
            dx = -p
        elif beta == 1.0:
            q = tl.exp(x)
            loss = q * (x - y)
            dx = loss + q
        else:
            q = tl.exp(x)
            p = tl.exp(y)
            mix = beta * p + (1 - beta) * q
            log_mix = tl.log(mix)
            loss = beta * p * (y - log_mix) + (1 - beta) * q * (x - log_mix)
            dx = (1 - beta) * q * (x - log_mix)
        tl.store(loss_ptr + base + at, loss * scale, mask=mask)
        tl.store(dX_ptr + base + at, dx * scale, mask=mask)


@triton.jit
def preference_loss_kernel(chosen, rejected, ref_chosen, ref_rejected, loss, n, beta, KIND: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    mask = at < n
    margin = tl.load(chosen + at, mask=mask) - tl.load(rejected + at, mask=mask)
    if ref_chosen is not None:
        margin -= tl.load(ref_chosen + at, mask=mask) - tl.load(ref_rejected + at, mask=mask)
    if KIND == "sigmoid":
        out = libdevice.log1p(tl.exp(-beta * margin))
    elif KIND == "hinge":
        out = tl.maximum(0.0, 1.0 - beta * margin)
    else:
        out = (margin - 1 / (2 * beta)) * (margin - 1 / (2 * beta))
    tl.store(loss + at, out, mask=mask)


@triton.jit
def tvd_kernel(p_ptr, p_stride, q_ptr, q_stride, loss_ptr, grads_ptr, n_cols, scale, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, n_cols, BLOCK):
        at = i + tl.arange(0, BLOCK)
        mask = at < n_cols
        p = tl.load(p_ptr + pid * p_stride + at, mask=mask, other=0.0)
        q = tl.load(q_ptr + pid * q_stride + at, mask=mask, other=0.0)
        total += 0.5 * tl.abs(p - q)
        tl.store(grads_ptr + pid * p_stride + at, tl.where(p > q, 0.5, -0.5) * scale, mask=mask)
    tl.store(loss_ptr + pid, tl.sum(total) * scale)


def cross_entropy(x, target, weight=None, smoothing=0.0, softcap=None, z=0.0, reduction="mean"):
    rows, vocab = x.shape
    loss = torch.zeros(rows, dtype=torch.float32, device=x.device)
    z_loss = torch.zeros_like(loss) if z else None
    n_non_ignore = (target != -100).sum().item()
    cross_entropy_kernel[(rows,)](
        x, x.stride(-2), target, target.stride(-1), weight, loss, z_loss, vocab, n_non_ignore, -100,
        lse_square_scale=z, label_smoothing=smoothing, reduction=reduction, softcap=softcap,
        RETURN_Z_LOSS=bool(z), BLOCK_SIZE=1024, HAS_WEIGHT=weight is not None, HAS_SOFTCAPPING=softcap is not None,
        num_warps=4,
    )
    return loss.sum()


if __name__ == "__main__":
    logits = torch.randn(8, 3001, device="cuda", dtype=torch.bfloat16)
    target = torch.randint(0, 3001, (8,), device="cuda")
    cross_entropy(logits.clone(), target)
    cross_entropy(logits.clone(), target, smoothing=0.1, softcap=30.0, z=1e-4)
    cross_entropy(logits.float(), target, weight=torch.ones(3001, device="cuda"), reduction="sum")
    logp, p = torch.log_softmax(logits.float(), -1), torch.softmax(logits.float(), -1)
    rows = torch.empty(8, device="cuda")
    kl_div_forward_kernel[(8,)](logp, p, rows, 3001, 3001, 1e-8, BLOCK=1024)
    kl_div_forward_kernel[(8,)](logp, p, logp, 3001, 3001, 1e-8, BLOCK=1024, log_target=True, reduction=REDUCTION_NONE)
    kl_div_backward_kernel[(8,)](p, logp, 3001, 3001, BLOCK=1024)
    out = torch.empty_like(logp)
    for beta in (0.0, 0.5, 1.0):
        jsd_kernel[(8,)](logp, logp, out, out, target, beta, 8, -100, 3001, BLOCK=1024, HAS_LABEL=beta == 0.5)
    for kind in ("sigmoid", "hinge", "ipo"):
        preference_loss_kernel[(1,)](rows, rows, rows, rows, rows, 8, 0.1, KIND=kind, B=64)
    preference_loss_kernel[(1,)](rows, rows, None, None, rows, 8, 0.1, KIND="sigmoid", B=64)
    tvd_kernel[(8,)](p, p.stride(0), p, p.stride(0), rows, out, 3001, 1 / 8, BLOCK=1024)
