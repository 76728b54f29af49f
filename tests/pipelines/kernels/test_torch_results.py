"""Operations of the stand-in against the real torch: type, shape, strides, and the values of whole numbers."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from pipelines.kernels.gpu import Gpu
from pipelines.kernels.torch_standin.build import build

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="the torch extra is not installed")
STANDIN: Any = build(Gpu(90, {"multiprocessor_count": 132}, "H100"))["torch"]

EXPRESSIONS = """
x.t().contiguous()
x.T @ x
y @ y.transpose(-1, -2)
torch.bmm(y, y.mT)
torch.matmul(y, v)
torch.addmm(v, torch.zeros(3, 6), x.t())
torch.outer(v, v)
torch.einsum('bij,bkj->bik', y, y)
F.linear(x, torch.zeros(7, 6))
x.sum()
x.sum(0)
x.sum((0, 1), keepdim=True)
x.mean(-1, keepdim=True)
x.var(dim=-1, unbiased=False)
x.std(1)
x.max(dim=1).indices
x.max(dim=1)[0]
x.amax(0)
x.argmax(-1)
x.norm(dim=-1)
(x > 0).any(1)
(x > 0).all()
(x > 0).sum(0)
i.sum()
i.float().mean()
i.max()
i.min().item()
i.prod()
i.cumsum(0)
torch.cumsum(i, dim=0, dtype=torch.int32)
i.argsort()
i.sort(descending=True)[0]
i.topk(2).values
torch.topk(x, 3, dim=-1)[1]
torch.diff(i)
torch.bincount(i)
torch.unique(i)
torch.unique(i, return_counts=True)[1]
torch.searchsorted(torch.tensor([0, 2, 4]), i)
i.nonzero()
i.nonzero(as_tuple=True)[0]
i[i > 1]
i[[0, 2]]
i[torch.tensor([2, 0, 0])]
m[:, i]
m.t()[i[:3]][:, 1]
m[i[2:3], i[:3]]
m[..., None, 1:]
m[None, :, ::2]
m[-1]
m[:, -1:]
m.index_select(1, torch.tensor([0, 2]))
m.gather(1, torch.tensor([[0], [1]]))
m.masked_fill(m > 3, -1)
m.clamp(min=1, max=4)
m.clamp_min(2)
torch.where(m > 2, m, torch.zeros_like(m))
torch.where(m > 2, m, 0)
torch.where(m > 2)[0]
m.repeat(2, 1)
m.tile(2)
m.repeat_interleave(2, dim=0)
m.repeat_interleave(i[:2], dim=0)
m.flip(0)
m.roll(1, 1)
m.tril()
m.triu(1)
torch.diag(i)
torch.cat([m, m])
torch.cat([m, m.float()], dim=-1)
torch.stack([i, i], dim=1)
torch.stack(torch.meshgrid(i, i, indexing='ij'))[0]
m.split(1, dim=1)[2]
m.chunk(2, dim=1)[1]
m.unbind(1)[1]
m.unflatten(1, (3, 1))
m.flatten()
m.movedim(0, 1)
m.swapaxes(0, 1)
m.diagonal()
m.expand(4, 2, 3)
m.broadcast_to(4, 2, 3)
m.unsqueeze(0).expand(-1, -1, -1)
m.view(3, 2)
m.view(-1)
m.view(torch.int32).stride()
x.view(torch.uint8).shape
x.half().view(torch.int16).shape
m.reshape(6).unfold(0, 2, 2)
m.as_strided((2, 2), (1, 2))
m.new_zeros(2)
m.new_empty((2, 3)).zero_()
m.new_full((2,), 3)
m.new_tensor([1.0, 2.0])
torch.full((2, 2), 3)
torch.full((2,), 3.0)
torch.full((2,), True)
torch.arange(0, 10, 3)
torch.arange(5.0)
torch.arange(3, 0, -1, dtype=torch.int32)
torch.linspace(0, 1, 5)
torch.eye(3, dtype=torch.int64)
torch.tensor(3)
torch.tensor([[1, 2], [3, 4]])
torch.tensor([1, 2.5])
torch.tensor([True, False])
torch.tensor([i[0], i[1]])
torch.as_tensor([1, 2], dtype=torch.int32)
torch.zeros_like(x.t())
torch.empty_like(y.permute(2, 0, 1)).zero_()
torch.ones_like(m, dtype=torch.float16)
torch.full_like(m, 4)
torch.empty_strided((2, 3), (1, 2)).zero_()
torch.rand(2, 3).shape
torch.randint(0, 5, (3,)).dtype
torch.randperm(5).sort()[0]
m + 1.5
1 - m
2 / m
m // 2
7 % (m + 1)
m ** 2
2 ** m
-m
~(m > 2)
(m > 1) & (m < 4)
m << 1
abs(m - 3)
m.float().exp().dtype
m.sqrt().dtype
x.half() * x
x.bfloat16() + x.half()
x.half() @ x.half().t()
m.to(torch.float16)
m.to(x)
m.type_as(x)
m.long()
x.t().half()
x.t().clone()
x.t().clone(memory_format=torch.contiguous_format)
torch.zeros_like(x.t(), memory_format=torch.contiguous_format)
torch.ones_like(x.t(), memory_format=torch.preserve_format)
torch.full_like(x.t(), 2, memory_format=torch.contiguous_format)
torch.empty_like(x.t(), memory_format=torch.contiguous_format).stride()
x.t().to(torch.float16, memory_format=torch.contiguous_format)
x.t().to(memory_format=torch.contiguous_format, non_blocking=True)
x.t().half(memory_format=torch.contiguous_format)
x.prod(dim=0, dtype=torch.int64)
m.add(2, alpha=3)
torch.maximum(m, torch.tensor(2))
torch.logical_and(m, m)
torch.div(m, 2, rounding_mode='floor')
torch.lerp(x, x, 0.5).shape
x.softmax(-1)
torch.softmax(x, dim=0, dtype=torch.float32)
F.softmax(x.half(), dim=-1)
F.log_softmax(x, -1)
F.gelu(x)
F.silu(x.t())
F.layer_norm(x, (6,))
F.pad(i, (1, 2))
F.one_hot(i)
F.one_hot(i, num_classes=8)
F.cross_entropy(x, torch.zeros(4, dtype=torch.int64))
F.mse_loss(x, x, reduction='none')
F.scaled_dot_product_attention(y[None], y[None], y[None])
F.embedding(i, x)
F.glu(x)
torch.promote_types(torch.int8, torch.uint8)
torch.result_type(m, 1.0)
torch.finfo(torch.bfloat16).max
torch.finfo(torch.float16).eps
torch.iinfo(torch.int32).max
m.element_size() * m.nelement()
m.nbytes
m.is_contiguous(), m.t().is_contiguous()
m.dim(), m.ndim, len(m), m.size(0), m.size(), m.stride(1)
m.t().storage_offset(), m[1].storage_offset()
[int(e) for e in i]
[row.tolist() for row in m]
int(i[-1]), float(i[0]), bool(i[0] == 1)
sum(i.tolist())
torch.allclose(x, x)
x.is_floating_point(), m.is_floating_point()
"""


def names(module: Any) -> dict[str, Any]:
    """The tensors that the expressions use: small, of known values."""
    held = {
        "x": module.arange(24, dtype=module.float32).reshape(4, 6),
        "y": module.arange(24, dtype=module.float32).reshape(2, 3, 4),
        "v": module.arange(4, dtype=module.float32),
        "m": module.arange(6).reshape(2, 3),
        "i": module.tensor([1, 2, 0, 2]),
    }
    return {"torch": module, "F": module.nn.functional, **held}


def described(value: Any) -> Any:
    """What can be compared of a result; the values of floats are rounded differently."""
    if hasattr(value, "stride"):
        exact = not value.is_floating_point() and not value.is_complex()
        return str(value.dtype), tuple(value.shape), value.stride(), value.tolist() if exact else None
    if isinstance(value, tuple | list):
        return [described(item) for item in value]
    return str(value) if "torch" in type(value).__module__ else value


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_an_operation_gives_what_torchs_gives(expression: str):
    import torch as real

    assert described(eval(expression, names(STANDIN))) == described(eval(expression, names(real)))
