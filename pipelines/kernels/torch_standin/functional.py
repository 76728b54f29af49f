"""``torch.nn.functional``: what references and wrappers call; shapes and layouts, mostly no values."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.kernels.torch_standin import autograd, reductions
from pipelines.kernels.torch_standin.core import FUNCTIONS, Array, Tensor, elementwise, new
from pipelines.kernels.torch_standin.dtypes import int64
from pipelines.kernels.torch_standin.products import made_of


def linear(x: Tensor, weight: Tensor, bias: Any = None) -> Tensor:
    """Return ``x @ weight.T + bias``."""
    shape = [*x.shape[:-1], weight.shape[0]] if weight.ndim > 1 else [*x.shape[:-1]]
    return made_of([x, weight, *([] if bias is None else [bias])], shape, x.dtype)


def embedding(places: Tensor, weight: Tensor, *_: Any, **__: Any) -> Tensor:
    """Return rows by their numbers."""
    return made_of([weight, places], [*places.shape, *weight.shape[1:]], weight.dtype)


def like_first(x: Tensor, *rest: Any, **__: Any) -> Tensor:
    """Return a result of the first operand's shape and type, its values not known."""
    tensors = [x, *(item for item in rest if isinstance(item, Tensor))]
    return made_of(tensors, x.shape, x.dtype)


def pointwise(x: Tensor, *_: Any, **__: Any) -> Tensor:
    """Return a result laid out as the operand, its values not known."""
    return elementwise(None, [x])


def attention(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> Tensor:
    """Return a result of ``scaled_dot_product_attention``'s shape."""
    return made_of([query, key, value], [*query.shape[:-1], value.shape[-1]], query.dtype)


def loss(prediction: Tensor, target: Any, *_: Any, reduction: str = "mean", **__: Any) -> Tensor:
    """Return a loss: one number, or one for each row."""
    rows = prediction.shape[:1] if isinstance(target, Tensor) and target.ndim < prediction.ndim else prediction.shape
    shape = rows if reduction == "none" else ()
    return autograd.record(new(shape, prediction.dtype, prediction.device), [prediction])


def one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """Return rows with a single 1."""
    count = num_classes if num_classes >= 0 else int(x.values("one_hot()").max()) + 1
    return made_of([x], [*x.shape, count], int64, lambda array: np.eye(count)[array])


def pad(x: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Return it with a margin."""
    margins = [(0, 0)] * x.ndim
    for i in range(len(pad) // 2):
        margins[-1 - i] = (int(pad[2 * i]), int(pad[2 * i + 1]))
    shape = [extent + sum(margin) for extent, margin in zip(x.shape, margins, strict=True)]
    fills = mode == "constant" and all(min(margin) >= 0 for margin in margins)

    def compute(array: Array) -> Any:
        return np.pad(array, margins, constant_values=0 if value is None else value)

    return made_of([x], shape, x.dtype, compute if fills else None)


def glu(x: Tensor, dim: int = -1) -> Tensor:
    """Return one half gated by the other."""
    shape = [*x.shape]
    shape[dim] //= 2
    return made_of([x], shape, x.dtype)


_LIKE = (
    "gelu",
    "dropout",
    "silu",
    "elu",
    "leaky_relu",
    "softplus",
    "hardswish",
    "mish",
    "selu",
    "relu6",
    "logsigmoid",
    "softsign",
)
_NORMS = ("layer_norm", "rms_norm", "group_norm", "batch_norm", "normalize", "instance_norm", "hardtanh")
_LOSSES = (
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    "l1_loss",
    "kl_div",
    "binary_cross_entropy_with_logits",
    "smooth_l1_loss",
)
FUNCTIONAL: dict[str, Any] = {
    **dict.fromkeys(_LIKE, pointwise),
    **dict.fromkeys(_NORMS, like_first),
    **dict.fromkeys(_LOSSES, loss),
    **{name: FUNCTIONS[name] for name in ("relu", "sigmoid", "tanh")},
    "softmax": reductions.softmax,
    "log_softmax": reductions.log_softmax,
    "linear": linear,
    "embedding": embedding,
    "scaled_dot_product_attention": attention,
    "one_hot": one_hot,
    "pad": pad,
    "glu": glu,
}
