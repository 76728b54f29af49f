import torch

from . import feed_forward, normalize
from .config import WARPS

if __name__ == "__main__":
    x = torch.randn(48, 256, device="cuda", dtype=torch.bfloat16)
    weight = torch.ones(256, device="cuda")
    y = normalize(x, weight)
    normalize(x[:, :200].contiguous(), weight)
    gate, up = torch.randn(2, 256, 96, device="cuda", dtype=torch.bfloat16)
    feed_forward(y, gate, up)
    assert WARPS
