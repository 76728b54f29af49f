import triton.language as tl

EPS = tl.constexpr(1e-6)
WARPS = {256: 2, 512: 4}
