"""Kernels without launch code, in the styles that people write them in: each has to compile by a guess."""

from __future__ import annotations

IMPORTS = "import triton\nimport triton.language as tl\n\n"

KERNELS: dict[str, str] = {
    "fused_gelu_with_bias": """
@triton.jit
def kernel(x_ptr, bias_ptr, out_ptr, n_elements, n_cols, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = at < n_elements
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32) + tl.load(bias_ptr + at % n_cols, mask=mask)
    tl.store(out_ptr + at, 0.5 * x * (1.0 + tl.erf(x * 0.7071)), mask=mask)
""",
    "exp_of_what_is_loaded": """
@triton.jit
def kernel(logits, result, width, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(logits + tl.program_id(0) * width + at, mask=at < width, other=0.0)
    tl.store(result + tl.program_id(0) * width + at, tl.exp(x), mask=at < width)
""",
    "embedding_by_index": """
@triton.jit
def kernel(table, token_ids, out, dim, BLOCK: tl.constexpr):
    row = tl.load(token_ids + tl.program_id(0))
    at = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * dim + at, tl.load(table + row * dim + at, mask=at < dim), mask=at < dim)
""",
    "cross_entropy_with_flags": """
@triton.jit
def kernel(logits_ptr, labels_ptr, loss_ptr, lse_ptr, n_cols, stride, smoothing,
           HAS_SMOOTHING: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    at = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * stride + at, mask=at < n_cols, other=-float("inf")).to(tl.float32)
    lse = tl.log(tl.sum(tl.exp(x - tl.max(x)))) + tl.max(x)
    loss = lse - tl.load(logits_ptr + row * stride + label).to(tl.float32)
    if HAS_SMOOTHING:
        loss = loss * (1 - smoothing)
    tl.store(loss_ptr + row, loss)
    tl.store(lse_ptr + row, lse)
""",
    "matmul_with_activation_by_name": """
@triton.jit
def relu(x):
    return tl.where(x > 0, x, 0.0)

@triton.jit
def kernel(A, B, C, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
           ACTIVATION: tl.constexpr):
    pid = tl.program_id(0)
    width = GROUP_M * tl.cdiv(N, BLOCK_N)
    group = pid // width
    size = min(tl.cdiv(M, BLOCK_M) - group * GROUP_M, GROUP_M)
    m = (group * GROUP_M + pid % size) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (pid % width) // size * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_at = A + m[:, None] * stride_am + k[None, :] * stride_ak
    b_at = B + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_at, mask=k[None, :] < K - i * BLOCK_K, other=0.0)
        b = tl.load(b_at, mask=k[:, None] < K - i * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_at += BLOCK_K * stride_ak
        b_at += BLOCK_K * stride_bk
    if ACTIVATION == "relu":
        acc = relu(acc)
    tl.store(C + m[:, None] * stride_cm + n[None, :] * stride_cn, acc.to(C.dtype.element_ty),
             mask=(m[:, None] < M) & (n[None, :] < N))
""",
    "configs_and_heuristics": """
@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (128, 256) for w in (2, 4)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.heuristics({"HAS_BIAS": lambda args: args["bias"] is not None})
@triton.jit
def kernel(x, bias, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, HAS_BIAS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at) if EVEN else tl.load(x + at, mask=at < n)
    if HAS_BIAS:
        value += tl.load(bias + at, mask=at < n)
    tl.store(y + at, value, mask=at < n)
""",
    "a_lock_and_atomics": """
@triton.jit
def kernel(values, locks, total, count, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.sum(tl.load(values + at, mask=at < n, other=0.0).to(tl.float32))
    while tl.atomic_cas(locks, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + x)
    tl.atomic_xchg(locks, 0)
    tl.atomic_add(count, 1)
""",
    "a_table_of_pointers": """
@triton.jit
def kernel(addresses, sizes, BLOCK: tl.constexpr):
    group = tl.program_id(0)
    base = tl.load(addresses + group).to(tl.pointer_type(tl.float16))
    at = tl.arange(0, BLOCK)
    mask = at < tl.load(sizes + group)
    tl.store(base + at, tl.load(base + at, mask=mask) * 2, mask=mask)
""",
    "a_dtype_and_a_function": """
@triton.jit
def square(x):
    return x * x

@triton.jit
def kernel(src, dst, numel, OUT_DTYPE: tl.constexpr, FN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst + at, FN(tl.load(src + at, mask=at < numel)).to(OUT_DTYPE), mask=at < numel)
""",
    "attention_through_a_helper": """
@triton.jit
def inner(acc, l_i, m_i, q, K, V, stride, length, offs_n, sm_scale, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    for start in range(0, length, BLOCK_N):
        k = tl.load(K + (start + offs_n)[None, :] * stride)
        s = tl.dot(q, k) * sm_scale
        if CAUSAL:
            s = tl.where(start + offs_n[None, :] > 3, float("-inf"), s)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        alpha = tl.exp(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(V + (start + offs_n)[:, None] * stride)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_new
    return acc, l_i, m_i

@triton.jit
def kernel(Q, K, V, Out, sm_scale, stride_qh, stride_qm, N_CTX,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * stride_qh
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n, offs_d = tl.arange(0, BLOCK_N), tl.arange(0, HEAD_DIM)
    q = tl.load(Q + head + offs_m[:, None] * stride_qm + offs_d[None, :])
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc, l_i, m_i = inner(acc, l_i, m_i, q, K + head + offs_d[:, None], V + head + offs_d[None, :], stride_qm,
                          N_CTX, offs_n, sm_scale, BLOCK_N, CAUSAL)
    acc = acc / l_i[:, None]
    tl.store(Out + head + offs_m[:, None] * stride_qm + offs_d[None, :], acc.to(Out.type.element_ty))
""",
    "a_descriptor_from_the_host": """
@triton.jit
def kernel(a_desc, b_desc, c_desc, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m, n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc.to(tl.float16))
""",
    "a_tuple_of_tensors": """
@triton.jit
def kernel(tensors, sizes, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(tensors[1] + at, tl.load(tensors[0] + at, mask=at < sizes[0]), mask=at < sizes[0])
""",
    "an_optional_pointer": """
@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, eps, n_cols, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n_cols + at, mask=at < n_cols, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x) / n_cols + eps)
    y = x * rstd * tl.load(weight_ptr + at, mask=at < n_cols)
    if bias_ptr is not None:
        y += tl.load(bias_ptr + at, mask=at < n_cols)
    tl.store(y_ptr + tl.program_id(0) * n_cols + at, y, mask=at < n_cols)
""",
    "packed_weights_of_four_bits": """
@triton.jit
def kernel(a_ptr, qweight_ptr, scales_ptr, out_ptr, K, stride_a, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
           BLOCK_K: tl.constexpr):
    m, n, k = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for i in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + m[:, None] * stride_a + (i + k)[None, :])
        packed = tl.load(qweight_ptr + ((i + k) // 8)[:, None] * BLOCK_N + n[None, :])
        w = ((packed >> ((k % 8) * 4)[:, None]) & 0xF).to(tl.float16)
        acc += tl.dot(a, w * tl.load(scales_ptr + n)[None, :].to(tl.float16))
    tl.store(out_ptr + m[:, None] * BLOCK_N + n[None, :], acc)
""",
    "recurrent_state_in_a_loop": """
@triton.jit
def kernel(q, k, v, h0, o, T, scale, K: tl.constexpr, V: tl.constexpr, USE_INITIAL_STATE: tl.constexpr):
    at_k, at_v = tl.arange(0, K), tl.arange(0, V)
    h = tl.zeros([K, V], dtype=tl.float32)
    if USE_INITIAL_STATE:
        h += tl.load(h0 + at_k[:, None] * V + at_v[None, :]).to(tl.float32)
    for t in range(0, T):
        b_q = tl.load(q + t * K + at_k).to(tl.float32) * scale
        h += tl.load(k + t * K + at_k).to(tl.float32)[:, None] * tl.load(v + t * V + at_v).to(tl.float32)[None, :]
        tl.store(o + t * V + at_v, tl.sum(h * b_q[:, None], axis=0))
""",
    "dropout_by_a_seed": """
@triton.jit
def kernel(x, y, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    tl.store(y + at, tl.where(keep, tl.load(x + at, mask=at < n) / (1 - p), 0.0), mask=at < n)
""",
    "an_optimizers_step": """
@triton.jit
def kernel(param, grad, exp_avg, exp_avg_sq, lr, beta1, beta2, eps, weight_decay, step, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    g = tl.load(grad + at, mask=mask).to(tl.float32)
    w = tl.load(param + at, mask=mask).to(tl.float32) * (1 - lr * weight_decay)
    m = beta1 * tl.load(exp_avg + at, mask=mask) + (1 - beta1) * g
    s = beta2 * tl.load(exp_avg_sq + at, mask=mask) + (1 - beta2) * g * g
    tl.store(param + at, w - lr * m / (tl.sqrt(s) + eps), mask=mask)
    tl.store(exp_avg + at, m, mask=mask)
    tl.store(exp_avg_sq + at, s, mask=mask)
""",
    "made_by_assignment": """
def body(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

kernel = triton.autotune(configs=[triton.Config({"BLOCK": 256})], key=[])(triton.jit(body))
""",
    "made_by_a_factory": """
def make(factor: int):
    @triton.jit
    def inner(x, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)
    return inner

kernel = make(2)
""",
    "a_method_of_a_class": """
class Operation:
    @staticmethod
    @triton.jit
    def kernel(x, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)
""",
    "a_transpose": """
@triton.jit
def kernel(src, dst, rows, cols, TILE: tl.constexpr):
    r = tl.program_id(0) * TILE + tl.arange(0, TILE)
    c = tl.program_id(1) * TILE + tl.arange(0, TILE)
    mask = (r < rows)[:, None] & (c < cols)[None, :]
    tile = tl.load(src + r[:, None] * cols + c[None, :], mask=mask)
    tl.store(dst + c[:, None] * rows + r[None, :], tl.trans(tile), mask=tl.trans(mask))
""",
}
