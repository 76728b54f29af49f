"""A head's projection and its loss in one, chunk by chunk, so that logits are never whole; a forward-only fused kernel too."""

import torch
import triton
import triton.language as tl


@triton.jit
def lse_and_gradient_kernel(
    X, stride, Y, LOSS, n_cols, scale, ignore: tl.constexpr, WITH_GRADIENT: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    X += row * stride
    y = tl.load(Y + row)
    if y == ignore:
        return
    m = -float("inf")
    d = 0.0
    target = tl.load(X + y).to(tl.float32)
    for i in range(0, n_cols, BLOCK):
        at = i + tl.arange(0, BLOCK)
        x = tl.load(X + at, mask=at < n_cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(x - new))
        m = new
    tl.store(LOSS + row, (m + tl.log(d) - target) * scale)
    if WITH_GRADIENT:
        tl.debug_barrier()
        for i in range(0, n_cols, BLOCK):
            at = i + tl.arange(0, BLOCK)
            x = tl.load(X + at, mask=at < n_cols, other=-float("inf")).to(tl.float32)
            g = (tl.exp(x - m) / d - (at == y)) * scale
            tl.store(X + at, g.to(X.dtype.element_ty), mask=at < n_cols)


@triton.jit
def element_mul_kernel(X_ptr, X_stride, grad_output_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    X_ptr += tl.program_id(0).to(tl.int64) * X_stride
    grad = tl.load(grad_output_ptr)
    for i in range(0, n_cols, BLOCK_SIZE):
        at = i + tl.arange(0, BLOCK_SIZE)
        tl.store(X_ptr + at, tl.load(X_ptr + at, mask=at < n_cols) * grad, mask=at < n_cols)


@triton.autotune(
    configs=[
        triton.Config({"BV": 64, "BK": 32}, num_warps=4, num_stages=2),
        triton.Config({"BV": 128, "BK": 32}, num_warps=4, num_stages=3),
    ],
    key=["V", "K"],
    prune_configs_by={"early_config_prune": lambda configs, nargs, **kw: [c for c in configs if c.kwargs["BV"] <= nargs["V"]]},
)
@triton.jit
def linear_logsumexp_kernel(X, W, Y, LSE, TARGET, M, V, K, BM: tl.constexpr, BV: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    y = tl.load(Y + rows, mask=rows < M, other=-1)
    m = tl.full((BM,), -float("inf"), tl.float32)
    d = tl.zeros((BM,), tl.float32)
    picked = tl.zeros((BM,), tl.float32)
    for v in range(0, V, BV):
        cols = v + tl.arange(0, BV)
        acc = tl.zeros((BM, BV), tl.float32)
        for k in range(0, K, BK):
            ks = k + tl.arange(0, BK)
            x = tl.load(X + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
            w = tl.load(W + cols[None, :] * K + ks[:, None], mask=(cols[None, :] < V) & (ks[:, None] < K), other=0.0)
            acc = tl.dot(x, w, acc)
        acc = tl.where(cols[None, :] < V, acc, -float("inf"))
        picked += tl.sum(tl.where(cols[None, :] == y[:, None], acc, 0.0), axis=1)
        new = tl.maximum(m, tl.max(acc, axis=1))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(acc - new[:, None]), axis=1)
        m = new
    tl.store(LSE + rows, m + tl.log(d), mask=rows < M)
    tl.store(TARGET + rows, picked, mask=rows < M)


def forward(x, weight, target, chunk_bytes=1 << 16):
    rows, hidden = x.shape
    vocab = weight.shape[0]
    chunks = triton.cdiv(vocab * rows * x.element_size(), chunk_bytes)
    chunk = triton.next_power_of_2(triton.cdiv(rows, chunks))
    grad_x = torch.zeros_like(x)
    grad_w = torch.zeros_like(weight)
    loss = torch.zeros(rows, dtype=torch.float32, device=x.device)
    for start in range(0, rows, chunk):
        part = x[start : start + chunk]
        logits = part @ weight.t()
        n = logits.shape[0]
        lse_and_gradient_kernel[(n,)](
            logits, logits.stride(0), target[start : start + chunk], loss[start : start + chunk], vocab, 1 / rows,
            ignore=-100, WITH_GRADIENT=True, BLOCK=1024,
        )
        grad_x[start : start + chunk] = logits @ weight
        grad_w += logits.t() @ part
    return loss.sum(), grad_x, grad_w


class FusedLinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, target):
        loss, grad_x, grad_w = forward(x.detach(), weight.detach(), target)
        ctx.save_for_backward(grad_x, grad_w)
        return loss

    @staticmethod
    def backward(ctx, grad_output):
        grad_x, grad_w = ctx.saved_tensors
        for each in (grad_x, grad_w):
            element_mul_kernel[(each.shape[0],)](each, each.stride(-2), grad_output, each.shape[1], BLOCK_SIZE=256)
        return grad_x, grad_w, None


if __name__ == "__main__":
    x = torch.randn(32, 128, device="cuda", dtype=torch.half, requires_grad=True)
    weight = torch.randn(2000, 128, device="cuda", dtype=torch.half, requires_grad=True)
    target = torch.randint(0, 2000, (32,), device="cuda")
    FusedLinearCrossEntropy.apply(x, weight, target).backward()
    lse, picked = (torch.empty(32, device="cuda") for _ in range(2))
    linear_logsumexp_kernel[(2,)](x, weight, target, lse, picked, 32, 2000, 128, BM=16)
