"""Matmuls: batched with fused activations passed as functions, split along K, persistent, stream-K, from descriptors."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def relu(x):
    return tl.maximum(x, 0.0)


@triton.jit
def leaky(x):
    return tl.where(x >= 0, x, 0.01 * x)


def configs():
    return [triton.Config({"BM": 32, "BN": n, "BK": 32, "GROUP": 4}, num_stages=2, num_warps=w) for n, w in ((32, 2), (64, 4))]


@triton.autotune(configs=configs(), key=["M", "N", "K"])
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BK"] == 0})
@triton.jit
def bmm_kernel(
    A, B, C, BIAS, M, N, K, stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm,
    ACTIVATION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EVEN_K: tl.constexpr,
):
    batch = tl.program_id(1).to(tl.int64)
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pid_m, pid_n = tl.swizzle2d(pid // tiles_n, pid % tiles_n, tiles_m, tiles_n, GROUP)
    rm = tl.max_contiguous(tl.multiple_of((pid_m * BM + tl.arange(0, BM)) % M, BM), BM)
    rn = tl.max_contiguous(tl.multiple_of((pid_n * BN + tl.arange(0, BN)) % N, BN), BN)
    rk = tl.arange(0, BK)
    a_ptrs = A + batch * stride_ab + rm[:, None] * stride_am + rk[None, :] * stride_ak
    b_ptrs = B + batch * stride_bb + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(K, 0, -BK):
        if EVEN_K:
            a, b = tl.load(a_ptrs), tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=rk[None, :] < k, other=0.0)
            b = tl.load(b_ptrs, mask=rk[:, None] < k, other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    if BIAS is not None:
        acc += tl.load(BIAS + rn)[None, :]
    if ACTIVATION is not None:
        acc = ACTIVATION(acc)
    rm, rn = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    c_ptrs = C + batch * stride_cb + rm[:, None] * stride_cm + rn[None, :]
    tl.store(c_ptrs, acc.to(C.dtype.element_ty), mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def split_k_kernel(A, B, C, M, N, K: tl.constexpr, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    first = tl.program_id(2) * (K // SPLIT)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(first, first + K // SPLIT, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(A + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None], other=0.0)
        b = tl.load(B + rk[:, None] * N + rn[None, :], mask=(rn < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
    tl.atomic_add(C + rm[:, None] * N + rn[None, :], acc, mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def persistent_kernel(A, B, C, M, N, K, NUM_SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FLATTEN: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    rk = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), tiles, NUM_SMS, flatten=FLATTEN):
        rm = tile // tiles_n * BM + tl.arange(0, BM)
        rn = tile % tiles_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in tl.range(0, K, BK, num_stages=2):
            a = tl.load(A + rm[:, None] * K + (k + rk)[None, :], mask=(rm < M)[:, None], other=0.0)
            b = tl.load(B + (k + rk)[:, None] * N + rn[None, :], mask=(rn < N)[None, :], other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(C + rm[:, None] * N + rn[None, :], acc.to(C.dtype.element_ty), mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def stream_k_kernel(A, B, C, LOCKS, M, N, K, per_program, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    iterations = tl.cdiv(K, BK)
    tiles_n = tl.cdiv(N, BN)
    step = tl.program_id(0) * per_program
    end = tl.minimum(step + per_program, tl.cdiv(M, BM) * tiles_n * iterations)
    while step < end:
        tile = step // iterations
        stop = tl.minimum((tile + 1) * iterations, end)
        rm = tile // tiles_n * BM + tl.arange(0, BM)
        rn = tile % tiles_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for i in range(step % iterations, step % iterations + stop - step):
            rk = i * BK + tl.arange(0, BK)
            a = tl.load(A + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None] & (rk < K)[None, :], other=0.0)
            b = tl.load(B + rk[:, None] * N + rn[None, :], mask=(rk < K)[:, None] & (rn < N)[None, :], other=0.0)
            acc += tl.dot(a, b)
        while tl.atomic_cas(LOCKS + tile, 0, 1) != 0:
            pass
        at = C + rm[:, None] * N + rn[None, :]
        mask = (rm < M)[:, None] & (rn < N)[None, :]
        tl.store(at, acc + tl.load(at, mask=mask, other=0.0), mask=mask)
        tl.atomic_xchg(LOCKS + tile, 0)
        step = stop


@triton.jit
def descriptor_matmul_kernel(a_desc, b_desc, c_desc, K, SUBTILES: tl.constexpr):
    BM: tl.constexpr = a_desc.block_shape[0]
    BN: tl.constexpr = b_desc.block_shape[0]
    BK: tl.constexpr = a_desc.block_shape[1]
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([col, k]).T, acc)
    if SUBTILES:
        halves = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
        left, right = tl.split(halves)
        c_desc.store([row, col], left.to(c_desc.dtype))
        c_desc.store([row, col + BN // 2], right.to(c_desc.dtype))
    else:
        c_desc.store([row, col], acc.to(c_desc.dtype))


def bmm(a, b, activation=None, bias=None):
    batch, M, K = a.shape
    N = b.shape[2]
    c = torch.empty(batch, M, N, device=a.device, dtype=a.dtype)
    bmm_kernel[lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]), batch)](
        a, b, c, bias, M, N, K, *a.stride(), *b.stride(), c.stride(0), c.stride(1), ACTIVATION=activation
    )
    return c


if __name__ == "__main__":
    a, b = torch.randn(2, 64, 96, device="cuda", dtype=torch.half), torch.randn(2, 96, 64, device="cuda", dtype=torch.half)
    bmm(a, b)
    bmm(a, b.transpose(1, 2).contiguous().transpose(1, 2), activation=leaky, bias=torch.zeros(64, device="cuda"))
    bmm(a[:, :, :90], b[:, :90], activation=relu)
    x, y = torch.randn(64, 256, device="cuda"), torch.randn(256, 64, device="cuda")
    out = torch.zeros(64, 64, device="cuda")
    split_k_kernel[(2, 2, 4)](x, y, out, 64, 64, 256, SPLIT=4, BM=32, BN=32, BK=16)
    sms = torch.cuda.get_device_properties("cuda").multi_processor_count
    for flatten in (False, True):
        persistent_kernel[(min(sms, 4),)](x.half(), y.half(), out, 64, 64, 256, NUM_SMS=4, BM=32, BN=32, BK=32, FLATTEN=flatten)
    stream_k_kernel[(3,)](x.bfloat16(), y.bfloat16(), out, torch.zeros(4, dtype=torch.int32, device="cuda"), 64, 64, 256, 11, BM=32, BN=32, BK=32)
    p, q = x.half(), y.t().contiguous().half()
    for subtiles in (False, True):
        descriptor_matmul_kernel[(1, 1)](
            TensorDescriptor.from_tensor(p, [64, 64]), TensorDescriptor.from_tensor(q, [64, 64]),
            TensorDescriptor.from_tensor(out.half(), [64, 32 if subtiles else 64]), 256, SUBTILES=subtiles,
        )
