"""Optimizers: fused steps with flags, one launch for many tensors through a table of addresses, 8-bit states, clipping."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def adamw_kernel(
    p_ptr, g_ptr, m_ptr, v_ptr, vmax_ptr, step_ptr, lr, beta1, beta2, eps, weight_decay, numel,
    DECOUPLED: tl.constexpr, AMSGRAD: tl.constexpr, CAPTURABLE: tl.constexpr, BLOCK: tl.constexpr,
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < numel
    p = tl.load(p_ptr + at, mask=mask).to(tl.float32)
    g = tl.load(g_ptr + at, mask=mask).to(tl.float32)
    m = tl.load(m_ptr + at, mask=mask)
    v = tl.load(v_ptr + at, mask=mask)
    step = tl.load(step_ptr) if CAPTURABLE else step_ptr
    if DECOUPLED:
        p *= 1 - lr * weight_decay
    else:
        g += weight_decay * p
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    step = step.to(tl.float32)
    correction1 = 1 - tl.exp2(step * tl.log2(beta1))
    correction2 = 1 - tl.exp2(step * tl.log2(beta2))
    second = v
    if AMSGRAD:
        second = tl.maximum(tl.load(vmax_ptr + at, mask=mask), v)
        tl.store(vmax_ptr + at, second, mask=mask)
    p -= lr * (m / correction1) / (tl.sqrt(second / correction2) + eps)
    tl.store(p_ptr + at, p.to(p_ptr.dtype.element_ty), mask=mask)
    tl.store(m_ptr + at, m, mask=mask)
    tl.store(v_ptr + at, v, mask=mask)


@triton.autotune(
    configs=[triton.Config({"BLOCK_SIZE": 128}, num_warps=4), triton.Config({"BLOCK_SIZE": 1024}, num_warps=8)],
    key=["n_elements"],
    restore_value=["p_ptr", "exp_avg_ptr"],
)
@triton.jit
def lion_kernel(p_ptr, grad_ptr, exp_avg_ptr, lr, wd, beta1, beta2, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    p = tl.load(p_ptr + offsets, mask=mask)
    grad = tl.load(grad_ptr + offsets, mask=mask)
    exp_avg = tl.load(exp_avg_ptr + offsets, mask=mask)
    p = p * (1 - lr * wd)
    diff = exp_avg - grad
    update = diff * beta1 + grad
    can_update = update != 0
    update_sign = tl.where(update > 0, -lr, lr)
    p = p + update_sign * can_update
    exp_avg = diff * beta2 + grad
    tl.store(p_ptr + offsets, p, mask=mask)
    tl.store(exp_avg_ptr + offsets, exp_avg, mask=mask)


@triton.jit
def adafactor_moments_kernel(g_ptr, row_ptr, col_ptr, rows, cols, beta2, eps, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    row = tl.zeros((BM,), tl.float32)
    for start in range(0, cols, BN):
        c = start + tl.arange(0, BN)
        mask = (r < rows)[:, None] & (c < cols)[None, :]
        g = tl.load(g_ptr + r[:, None] * cols + c[None, :], mask=mask, other=0.0).to(tl.float32)
        square = tl.where(mask, g * g + eps, 0.0)
        row += tl.sum(square, 1)
        tl.atomic_add(col_ptr + c, (1 - beta2) * tl.sum(square, 0) / rows, mask=c < cols)
    old = tl.load(row_ptr + r, mask=r < rows, other=0.0)
    tl.store(row_ptr + r, beta2 * old + (1 - beta2) * row / cols, mask=r < rows)


@triton.jit
def adafactor_update_kernel(p_ptr, g_ptr, row_ptr, col_ptr, row_mean, lr, cols, BN: tl.constexpr):
    r = tl.program_id(0)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    factor = tl.rsqrt(tl.load(row_ptr + r) / row_mean)
    update = tl.load(g_ptr + r * cols + c, mask=c < cols).to(tl.float32) * factor * tl.rsqrt(tl.load(col_ptr + c, mask=c < cols, other=1.0))
    p = tl.load(p_ptr + r * cols + c, mask=c < cols)
    tl.store(p_ptr + r * cols + c, p - lr * update, mask=c < cols)


@triton.jit
def multi_tensor_sgd_kernel(param_table, grad_table, momentum_table, sizes, chunk_owner, chunk_start, lr, momentum, NESTEROV: tl.constexpr, CHUNK: tl.constexpr):
    owner = tl.load(chunk_owner + tl.program_id(0))
    start = tl.load(chunk_start + tl.program_id(0))
    n = tl.load(sizes + owner)
    p_ptr = tl.load(param_table + owner).to(tl.pointer_type(tl.float32))
    g_ptr = tl.load(grad_table + owner).to(tl.pointer_type(tl.float32))
    m_ptr = tl.load(momentum_table + owner).to(tl.pointer_type(tl.float32))
    at = start + tl.arange(0, CHUNK)
    mask = at < n
    g = tl.load(g_ptr + at, mask=mask)
    m = momentum * tl.load(m_ptr + at, mask=mask) + g
    step = g + momentum * m if NESTEROV else m
    tl.store(m_ptr + at, m, mask=mask)
    tl.store(p_ptr + at, tl.load(p_ptr + at, mask=mask) - lr * step, mask=mask)


@triton.jit
def adam_8bit_kernel(p_ptr, g_ptr, m_ptr, m_absmax_ptr, v_ptr, v_absmax_ptr, lr, beta1, beta2, eps, BLOCK: tl.constexpr = 256):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(g_ptr + at).to(tl.float32)
    m = tl.load(m_ptr + at).to(tl.float32) / 127.0 * tl.load(m_absmax_ptr + block)
    v = tl.load(v_ptr + at).to(tl.float32) / 255.0 * tl.load(v_absmax_ptr + block)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    m_max = tl.max(tl.abs(m))
    v_max = tl.max(v)
    tl.store(m_ptr + at, (m / m_max * 127.0).to(tl.int8))
    tl.store(v_ptr + at, (v / v_max * 255.0).to(tl.uint8))
    tl.store(m_absmax_ptr + block, m_max)
    tl.store(v_absmax_ptr + block, v_max)
    tl.store(p_ptr + at, tl.load(p_ptr + at) - lr * m / (tl.sqrt(v) + eps))


@triton.jit
def sum_of_squares_kernel(g_ptr, out_ptr, numel, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float64)
    for start in tl.range(tl.program_id(0) * BLOCK, numel, tl.num_programs(0) * BLOCK, num_stages=2):
        at = start + tl.arange(0, BLOCK)
        g = tl.load(g_ptr + at, mask=at < numel, other=0.0).to(tl.float64)
        total += g * g
    tl.atomic_add(out_ptr, tl.sum(total))


class FusedAdamW(torch.optim.Optimizer if hasattr(torch, "optim") else object):
    def __init__(self, params, lr=1e-3, amsgrad=False, capturable=False):
        self.params, self.lr, self.amsgrad, self.capturable = list(params), lr, amsgrad, capturable
        self.states, self.count = [{} for _ in self.params], 0

    @torch.no_grad()
    def step(self):
        self.count += 1
        for p, state in zip(self.params, self.states):
            if not state:
                state["m"], state["v"] = torch.zeros_like(p, dtype=torch.float32), torch.zeros_like(p, dtype=torch.float32)
                state["vmax"] = torch.zeros_like(p, dtype=torch.float32) if self.amsgrad else None
            step = torch.tensor(self.count, device=p.device) if self.capturable else self.count
            adamw_kernel[(triton.cdiv(p.numel(), 1024),)](
                p, p.grad, state["m"], state["v"], state["vmax"], step, self.lr, 0.9, 0.999, 1e-8, 0.01, p.numel(),
                DECOUPLED=True, AMSGRAD=self.amsgrad, CAPTURABLE=self.capturable, BLOCK=1024,
            )


if __name__ == "__main__":
    params = [torch.randn(64, 48, device="cuda", dtype=torch.bfloat16), torch.randn(500, device="cuda")]
    for p in params:
        p.grad = torch.randn_like(p)
    optimizer = FusedAdamW(params)
    for _ in range(3):
        optimizer.step()
    FusedAdamW(params[1:], amsgrad=True, capturable=True).step()
    p, g = params[1], params[1].grad
    lion_kernel[lambda meta: (triton.cdiv(p.numel(), meta["BLOCK_SIZE"]),)](p, g, torch.zeros_like(p), 1e-4, 0.1, 0.9, 0.99, p.numel())
    matrix = torch.randn(40, 100, device="cuda")
    rows, cols = torch.zeros(40, device="cuda"), torch.zeros(100, device="cuda")
    adafactor_moments_kernel[(3,)](matrix, rows, cols, 40, 100, 0.999, 1e-30, BM=16, BN=64)
    adafactor_update_kernel[(40, 2)](matrix, matrix, rows, cols, 1.5, 1e-2, 100, BN=64)
    tensors = [torch.randn(n, device="cuda") for n in (700, 30)]
    table = torch.tensor([t.data_ptr() for t in tensors], dtype=torch.int64, device="cuda")
    sizes = torch.tensor([t.numel() for t in tensors], device="cuda", dtype=torch.int32)
    owner, start = (torch.tensor(v, device="cuda", dtype=torch.int32) for v in ([0, 0, 1], [0, 512, 0]))
    for nesterov in (False, True):
        multi_tensor_sgd_kernel[(3,)](table, table, table, sizes, owner, start, 0.1, 0.9, NESTEROV=nesterov, CHUNK=512)
    state = torch.zeros(1024, dtype=torch.int8, device="cuda"), torch.ones(4, device="cuda"), torch.zeros(1024, dtype=torch.uint8, device="cuda"), torch.ones(4, device="cuda")
    flat = torch.randn(1024, device="cuda")
    adam_8bit_kernel[(4,)](flat, flat, *state, 1e-3, 0.9, 0.999, 1e-8)
    norm = torch.zeros(1, dtype=torch.float64, device="cuda")
    sum_of_squares_kernel[(4,)](flat, norm, flat.numel(), BLOCK=256)
    assert math.isfinite(2.0)
