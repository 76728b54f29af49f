"""State space models: one step of the state, a chunk's scan, and causal convolutions with their cache."""

import torch
import triton
import triton.language as tl

PAD_SLOT_ID = -1


@triton.jit
def softplus(dt):
    return tl.where(dt <= 20.0, tl.math.log(tl.math.exp(dt) + 1), dt)


@triton.heuristics({"HAS_DT_BIAS": lambda args: args["dt_bias_ptr"] is not None})
@triton.heuristics({"HAS_D": lambda args: args["D_ptr"] is not None})
@triton.heuristics({"HAS_Z": lambda args: args["z_ptr"] is not None})
@triton.heuristics({"BLOCK_SIZE_DSTATE": lambda args: triton.next_power_of_2(args["dstate"])})
@triton.jit(do_not_specialize=["batch"])
def selective_state_update_kernel(
    state_ptr, x_ptr, dt_ptr, dt_bias_ptr, A_ptr, B_ptr, C_ptr, D_ptr, z_ptr, out_ptr, state_batch_indices_ptr, pad_slot_id,
    batch, nheads, dim, dstate, nheads_ngroups_ratio,
    stride_state_batch, stride_state_head, stride_state_dim, stride_state_dstate,
    stride_x_batch, stride_x_head, stride_x_dim, stride_dt_batch, stride_dt_head, stride_dt_dim,
    DT_SOFTPLUS: tl.constexpr, TIE_HDIM: tl.constexpr, BLOCK_SIZE_M: tl.constexpr,
    HAS_DT_BIAS: tl.constexpr, HAS_D: tl.constexpr, HAS_Z: tl.constexpr, BLOCK_SIZE_DSTATE: tl.constexpr,
):
    pid_m = tl.program_id(axis=0)
    pid_b = tl.program_id(axis=1)
    pid_h = tl.program_id(axis=2)
    if state_batch_indices_ptr is not None:
        slot = tl.load(state_batch_indices_ptr + pid_b).to(tl.int64)
    else:
        slot = pid_b.to(tl.int64)
    if slot == pad_slot_id:
        return
    offs_m = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = tl.arange(0, BLOCK_SIZE_DSTATE)
    state_ptrs = state_ptr + slot * stride_state_batch + pid_h * stride_state_head + offs_m[:, None] * stride_state_dim + offs_n[None, :] * stride_state_dstate
    m_m, m_n = offs_m < dim, offs_n < dstate
    mask = m_m[:, None] & m_n[None, :]
    state = tl.load(state_ptrs, mask=mask, other=0.0)
    x = tl.load(x_ptr + pid_b * stride_x_batch + pid_h * stride_x_head + offs_m * stride_x_dim, mask=m_m, other=0.0).to(tl.float32)
    dt_base = dt_ptr + pid_b * stride_dt_batch + pid_h * stride_dt_head
    if not TIE_HDIM:
        dt = tl.load(dt_base + offs_m * stride_dt_dim, mask=m_m, other=0.0).to(tl.float32)
        if HAS_DT_BIAS:
            dt += tl.load(dt_bias_ptr + pid_h * dim + offs_m, mask=m_m, other=0.0).to(tl.float32)
        if DT_SOFTPLUS:
            dt = softplus(dt)
        A = tl.load(A_ptr + (pid_h * dim + offs_m)[:, None] * dstate + offs_n[None, :], mask=mask, other=0.0).to(tl.float32)
        dA = tl.exp(A * dt[:, None])
    else:
        dt = tl.load(dt_base).to(tl.float32)
        if HAS_DT_BIAS:
            dt += tl.load(dt_bias_ptr + pid_h).to(tl.float32)
        if DT_SOFTPLUS:
            dt = softplus(dt)
        dA = tl.exp(tl.load(A_ptr + pid_h).to(tl.float32) * dt)
    group = pid_b * (nheads // nheads_ngroups_ratio) + pid_h // nheads_ngroups_ratio
    B = tl.load(B_ptr + group * dstate + offs_n, mask=m_n, other=0.0).to(tl.float32)
    C = tl.load(C_ptr + group * dstate + offs_n, mask=m_n, other=0.0).to(tl.float32)
    dB = B[None, :] * dt[:, None] if not TIE_HDIM else (B * dt)[None, :]
    state = state * dA + dB * x[:, None]
    tl.store(state_ptrs, state, mask=mask)
    out = tl.sum(state * C[None, :], axis=1)
    if HAS_D:
        out += x * tl.load(D_ptr + pid_h * dim + offs_m, mask=m_m, other=0.0).to(tl.float32)
    if HAS_Z:
        z = tl.load(z_ptr + pid_b * stride_x_batch + pid_h * stride_x_head + offs_m * stride_x_dim, mask=m_m, other=0.0).to(tl.float32)
        out *= z * tl.sigmoid(z)
    tl.store(out_ptr + pid_b * stride_x_batch + pid_h * stride_x_head + offs_m * stride_x_dim, out, mask=m_m)


@triton.jit
def scan_step(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def selective_scan_kernel(x, dt, A, B, C, out, state, L, D, N: tl.constexpr, BT: tl.constexpr):
    """One channel: its N states go along time together, blocks of time carry the last state on."""
    channel, batch = tl.program_id(0), tl.program_id(1)
    n = tl.arange(0, N)
    a = tl.load(A + channel * N + n)
    last = tl.zeros([N], tl.float32)
    for start in range(0, L, BT):
        t = start + tl.arange(0, BT)
        mask = t < L
        b_x = tl.load(x + (batch * L + t) * D + channel, mask=mask, other=0.0)
        b_dt = tl.load(dt + (batch * L + t) * D + channel, mask=mask, other=0.0)
        b_B = tl.load(B + (batch * L + t)[:, None] * N + n[None, :], mask=mask[:, None], other=0.0)
        b_C = tl.load(C + (batch * L + t)[:, None] * N + n[None, :], mask=mask[:, None], other=0.0)
        decay = tl.exp(b_dt[:, None] * a[None, :])
        given = (b_dt * b_x)[:, None] * b_B
        decays, inner = tl.associative_scan((decay, given), 0, scan_step)
        h = inner + decays * last[None, :]
        tl.store(out + (batch * L + t) * D + channel, tl.sum(h * b_C, 1), mask=mask)
        last = tl.sum(tl.where((tl.arange(0, BT) == BT - 1)[:, None], h, 0.0), 0)
    tl.store(state + (batch * D + channel) * N + n, last)


@triton.jit
def causal_conv1d_fwd_kernel(
    x_ptr, w_ptr, bias_ptr, o_ptr, dim, seqlen, KERNEL_WIDTH: tl.constexpr, SILU: tl.constexpr,
    HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    batch = tl.program_id(0)
    t = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    c = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_c = c < dim
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + c, mask=mask_c, other=0.0).to(tl.float32)[None, :]
    for j in tl.static_range(KERNEL_WIDTH):
        at = t - (KERNEL_WIDTH - 1) + j
        w = tl.load(w_ptr + c * KERNEL_WIDTH + j, mask=mask_c, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + (batch * seqlen + at)[:, None] * dim + c[None, :], mask=((at >= 0) & (at < seqlen))[:, None] & mask_c[None, :], other=0.0)
        acc += x.to(tl.float32) * w[None, :]
    if SILU:
        acc = acc / (1 + tl.exp(-acc))
    tl.store(o_ptr + (batch * seqlen + t)[:, None] * dim + c[None, :], acc, mask=(t < seqlen)[:, None] & mask_c[None, :])


@triton.jit
def causal_conv1d_update_kernel(x_ptr, state_ptr, w_ptr, slots_ptr, o_ptr, dim, PAD: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    slot = tl.load(slots_ptr + batch)
    if slot == PAD:
        return
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = c < dim
    base = state_ptr + (slot.to(tl.int64) * dim + c) * (W - 1)
    x = tl.load(x_ptr + batch * dim + c, mask=mask)
    acc = x.to(tl.float32) * tl.load(w_ptr + c * W + W - 1, mask=mask).to(tl.float32)
    for j in tl.static_range(W - 1):
        acc += tl.load(base + j, mask=mask).to(tl.float32) * tl.load(w_ptr + c * W + j, mask=mask).to(tl.float32)
    for j in tl.static_range(W - 2):
        tl.store(base + j, tl.load(base + j + 1, mask=mask), mask=mask)
    tl.store(base + W - 2, x, mask=mask)
    tl.store(o_ptr + batch * dim + c, acc, mask=mask)


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, softplus=False, slots=None):
    batch, heads, dim, dstate = state.shape
    out = torch.empty_like(x)
    tied = A.stride(-1) == 0 and A.stride(-2) == 0 and dt.stride(-1) == 0
    with torch.cuda.device(x.device.index):
        selective_state_update_kernel[lambda META: (triton.cdiv(dim, META["BLOCK_SIZE_M"]), batch, heads)](
            state, x, dt, dt_bias, A, B, C, D, z, out, slots, PAD_SLOT_ID, batch, heads, dim, dstate, heads // B.shape[1],
            *state.stride(), *x.stride(), *dt.stride(), softplus, tied, 16, num_warps=4,
        )
    return out


if __name__ == "__main__":
    batch, heads, dim, n = 2, 4, 32, 16
    state = torch.zeros(batch, heads, dim, n, device="cuda")
    x, dt = torch.randn(2, batch, heads, dim, device="cuda")
    A = -torch.rand(heads, dim, n, device="cuda")
    B, C = torch.randn(2, batch, 1, n, device="cuda")
    selective_state_update(state, x, dt, A, B, C)
    tied_A = -torch.rand(heads, 1, 1, device="cuda").expand(heads, dim, n)
    tied_dt = torch.rand(batch, heads, 1, device="cuda").expand(batch, heads, dim)
    ones = torch.ones(heads, dim, device="cuda")
    slots = torch.tensor([1, PAD_SLOT_ID], device="cuda")
    selective_state_update(state, x, tied_dt, tied_A, B, C, D=ones, z=x, dt_bias=ones[:, :1].expand(heads, dim), softplus=True, slots=slots)
    L, D = 40, 24
    seq, gate = torch.randn(2, batch, L, D, device="cuda")
    BC = torch.randn(batch, L, n, device="cuda")
    selective_scan_kernel[(D, batch)](seq, gate, A, BC, BC, torch.empty_like(seq), torch.empty(batch, D, n, device="cuda"), L, D, N=n, BT=16)
    w = torch.randn(D, 4, device="cuda", dtype=torch.half)
    seq = seq.half()
    causal_conv1d_fwd_kernel[(batch, 3, 1)](seq, w, None, torch.empty_like(seq), D, L, 4, True, False, 16, 32)
    causal_conv1d_fwd_kernel[(batch, 3, 1)](seq, w, w[:, 0].contiguous(), torch.empty_like(seq), D, L, 4, False, True, 16, 32)
    step = torch.randn(batch, D, device="cuda", dtype=torch.half)
    cache = torch.zeros(4, D, 3, device="cuda", dtype=torch.half)
    causal_conv1d_update_kernel[(batch, 1)](step, cache, w, slots, torch.empty_like(step), D, PAD=PAD_SLOT_ID, W=4, BLOCK=32)
