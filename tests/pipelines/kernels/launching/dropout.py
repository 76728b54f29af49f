"""A dropout by a seed: nothing but numbers and flat tensors."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) > p
    tl.store(out_ptr + at, tl.where(kept, tl.load(x_ptr + at, mask=at < n) / (1 - p), 0.0), mask=at < n)


class Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        dropout_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n, self.p, 123, BLOCK=1024)
        return out


@torch.no_grad()
def main():
    model = nn.Sequential(nn.Linear(10, 16), Dropout(0.5)).cuda().half().eval()
    model(torch.randn(size=(10,), device="cuda", dtype=torch.half))
    out = Dropout(p=1.0)(torch.randn(10, 33, device="cuda", dtype=torch.bfloat16)[:, 1:])
    kept = (out != 0).to(torch.int32)
    print(kept, out.shape)


if __name__ == "__main__":
    main()
