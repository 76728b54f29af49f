"""A matmul with autotune configs, strides as arguments, a fused activation, also of a transposed operand."""

import torch
import triton
import triton.language as tl


def configs():
    return [
        triton.Config({"BM": m, "BN": n, "BK": 32, "GROUP": 8}, num_stages=s, num_warps=w)
        for m, n, s, w in [(128, 128, 3, 8), (64, 128, 4, 4), (128, 32, 4, 4), (32, 64, 5, 2)]
    ]


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.autotune(configs=configs(), key=["M", "N", "K"])
@triton.heuristics({"EVEN_K": lambda arguments: arguments["K"] % arguments["BK"] == 0})
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN_K: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, K, BK):
        mask = True if EVEN_K else (at + k < K)
        a = tl.load(a_ptr + m[:, None] * stride_am + (at + k)[None, :] * stride_ak, mask=mask)
        b = tl.load(b_ptr + (at + k)[:, None] * stride_bk + n[None, :] * stride_bn, mask=mask)
        total = tl.dot(a, b, total)
    if ACTIVATION == "leaky_relu":
        total = leaky_relu(total)
    tl.store(c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn, total.to(tl.float16))


def matmul(a, b, activation=""):
    assert a.shape[1] == b.shape[0], "Incompatible dimensions"
    (M, K), (K, N) = a.shape, b.shape
    c = torch.empty((M, N), device=a.device, dtype=torch.float16)

    def grid(meta):
        return triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"])

    matmul_kernel[grid](
        a,
        b,
        c,
        M,
        N,
        K,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        c.stride(1),
        ACTIVATION=activation,
    )
    return c


a = torch.rand((512, 512), device="cuda", dtype=torch.float16) - 0.5
b = torch.rand((512, 512), device="cuda", dtype=torch.float16) - 0.5
if torch.allclose(matmul(a, b), torch.matmul(a, b), atol=1e-2, rtol=0):
    matmul(a, b.T.contiguous().T, "leaky_relu")
if hasattr(torch, "float8_e5m2") and torch.cuda.get_device_capability()[0] >= 9:
    matmul(a.to(torch.float8_e5m2), b.T.to(torch.float8_e5m2).T)
