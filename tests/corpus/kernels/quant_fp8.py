"""Fp8: groups quantized by their own maximum, transposed casts, and a matmul that scales block by block."""

import torch
import triton
import triton.language as tl


def is_supported():
    return torch.cuda.get_device_capability() >= (8, 9)


@triton.jit
def per_token_group_quant_fp8_kernel(
    y_ptr, y_q_ptr, y_s_ptr, group_size, y_num_columns, y_row_stride, eps, fp8_min, fp8_max,
    USE_UE8M0: tl.constexpr, COLUMN_MAJOR: tl.constexpr, y_s_col_stride, BLOCK: tl.constexpr,
):
    groups_per_row = y_num_columns // group_size
    g_id = tl.program_id(0).to(tl.int64)
    row = g_id // groups_per_row
    row_g_id = g_id % groups_per_row
    y_ptr += row * y_row_stride + row_g_id * group_size
    y_q_ptr += g_id * group_size
    if COLUMN_MAJOR:
        y_s_ptr += row_g_id * y_s_col_stride + row
    else:
        y_s_ptr += g_id
    cols = tl.arange(0, BLOCK)
    mask = cols < group_size
    y = tl.load(y_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    absmax = tl.maximum(tl.max(tl.abs(y)), eps)
    y_s = absmax * (1.0 / fp8_max)
    if USE_UE8M0:
        y_s = tl.math.exp2(tl.ceil(tl.math.log2(y_s)))
    y_q = tl.clamp(y / y_s, fp8_min, fp8_max).to(y_q_ptr.dtype.element_ty)
    tl.store(y_q_ptr + cols, y_q, mask=mask)
    tl.store(y_s_ptr, y_s)


@triton.jit
def w8a8_block_fp8_matmul_kernel(
    A, B, C, As, Bs, M, N, K, group_n, group_k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    stride_As_m, stride_As_k, stride_Bs_k, stride_Bs_n,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + (pid % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = A + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = B + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    As_ptrs = As + offs_am * stride_As_m
    Bs_ptrs = Bs + offs_bn // group_n * stride_Bs_n
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        offs_ks = k * BLOCK_SIZE_K // group_k
        a_s = tl.load(As_ptrs + offs_ks * stride_As_k)
        b_s = tl.load(Bs_ptrs + offs_ks * stride_Bs_k)
        accumulator += tl.dot(a, b) * a_s[:, None] * b_s[None, :]
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if C.dtype.element_ty == tl.bfloat16:
        c = accumulator.to(tl.bfloat16)
    elif C.dtype.element_ty == tl.float16:
        c = accumulator.to(tl.float16)
    else:
        c = accumulator.to(tl.float32)
    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = C + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, c, mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


@triton.jit
def cast_transpose_fp8_kernel(x_ptr, y_ptr, y_t_ptr, scale_ptr, amax_ptr, M, N, E5M2: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    kind: tl.constexpr = tl.float8e5 if E5M2 else tl.float8e4nv
    y = (x * tl.load(scale_ptr)).to(kind, fp_downcast_rounding="rtne")
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], y, mask=mask)
    tl.store(y_t_ptr + cols[:, None] * M + rows[None, :], tl.trans(y), mask=tl.trans(mask))
    tl.atomic_max(amax_ptr, tl.max(tl.abs(x)), sem="relaxed")


def per_token_group_quant_fp8(x, group_size, eps=1e-10, column_major=False, ue8m0=False):
    x_q = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    M = x.numel() // group_size
    info = torch.finfo(torch.float8_e4m3fn)
    shape = x.shape[:-1] + (x.shape[-1] // group_size,)
    if column_major:
        x_s = torch.empty(shape[::-1], device=x.device, dtype=torch.float32).permute(-1, -2)
    else:
        x_s = torch.empty(shape, device=x.device, dtype=torch.float32)
    block = triton.next_power_of_2(group_size)
    per_token_group_quant_fp8_kernel[(M,)](
        x, x_q, x_s, group_size, x.shape[1], x.stride(0), eps, fp8_min=info.min, fp8_max=info.max, USE_UE8M0=ue8m0,
        COLUMN_MAJOR=column_major, y_s_col_stride=x_s.stride(1), BLOCK=block, num_warps=min(max(block // 256, 1), 8), num_stages=1,
    )
    return x_q, x_s


def w8a8_block_fp8_matmul(A, B, As, Bs, block_size, output_dtype=torch.bfloat16):
    block_n, block_k = block_size
    M, N, K = A.numel() // A.shape[-1], B.shape[0], A.shape[-1]
    C = A.new_empty(A.shape[:-1] + (N,), dtype=output_dtype)
    config = {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": block_k, "GROUP_SIZE_M": 8, "num_warps": 4, "num_stages": 2}
    grid = lambda META: (triton.cdiv(M, META["BLOCK_SIZE_M"]) * triton.cdiv(N, META["BLOCK_SIZE_N"]),)
    w8a8_block_fp8_matmul_kernel[grid](
        A, B, C, As, Bs, M, N, K, block_n, block_k, A.stride(-2), A.stride(-1), B.stride(1), B.stride(0),
        C.stride(-2), C.stride(-1), As.stride(-2), As.stride(-1), Bs.stride(1), Bs.stride(0), **config,
    )
    return C


if __name__ == "__main__":
    x = torch.randn(48, 256, device="cuda", dtype=torch.bfloat16)
    q, s = per_token_group_quant_fp8(x, 64)
    per_token_group_quant_fp8(x, 64, column_major=True, ue8m0=True)
    weight = torch.randn(128, 256, device="cuda").to(torch.float8_e4m3fn)
    weight_scale = torch.rand(2, 4, device="cuda")
    w8a8_block_fp8_matmul(q, weight, s, weight_scale, (64, 64))
    w8a8_block_fp8_matmul(q, weight, s, weight_scale, (64, 64), torch.float16)
    one, amax = torch.ones((), device="cuda"), torch.zeros((), device="cuda")
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2):
        y, t = torch.empty(48, 256, device="cuda", dtype=kind), torch.empty(256, 48, device="cuda", dtype=kind)
        cast_transpose_fp8_kernel[(2, 8)](x, y, t, one, amax, 48, 256, E5M2=kind is torch.float8_e5m2, B=32)
