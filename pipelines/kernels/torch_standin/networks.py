"""``torch.nn``: what commonly wraps a kernel."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from pipelines.kernels.torch_standin import autograd, functional
from pipelines.kernels.torch_standin.core import FUNCTIONS, Tensor
from pipelines.kernels.torch_standin.dtypes import DTYPES, default_dtype
from pipelines.kernels.torch_standin.errors import MissingError


class Parameter(Tensor):
    """A tensor that a module owns and learns."""

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        base = FUNCTIONS["empty"](0) if data is None else data
        super().__init__(base.storage, base.dtype, base.shape, base.strides, base.device)
        self.offset = base.offset
        self.requires_grad = requires_grad


class Module:
    """A network: parameters, buffers and other modules by their names."""

    training = True

    def __init__(self, *_: Any, **__: Any) -> None:
        self.__dict__.update(_parameters=OrderedDict(), _buffers=OrderedDict(), _modules=OrderedDict())

    def __setattr__(self, name: str, value: Any) -> None:
        for kind, table in ((Parameter, "_parameters"), (Module, "_modules")):
            if isinstance(value, kind):
                self.__dict__[table][name] = value
                return
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, ()):
                self.__dict__[table][name] = value
                return
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
        if hasattr(type(self), name) or type(self).__module__ != __name__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        raise MissingError(f"torch.nn.{type(self).__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it forward."""
        return self.forward(*args, **kwargs)

    def register_parameter(self, name: str, value: Any) -> None:
        """Own a parameter."""
        self._parameters[name] = value

    def register_buffer(self, name: str, value: Any, persistent: bool = True) -> None:
        """Own a tensor that is not learnt."""
        del persistent
        self._buffers[name] = value

    def add_module(self, name: str, module: Any) -> None:
        """Own a module."""
        self._modules[name] = module

    def modules(self) -> Iterator[Module]:
        """Yield this module and all inside it."""
        yield self
        for child in self._modules.values():
            if child is not None:
                yield from child.modules()

    def children(self) -> Iterator[Module]:
        """Yield the modules directly inside."""
        yield from self._modules.values()

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield parameters by their names."""
        for name, value in self._parameters.items():
            if value is not None:
                yield prefix + name, value
        for name, child in self._modules.items() if recurse else ():
            yield from child.named_parameters(f"{prefix}{name}.")

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Yield parameters."""
        for _, value in self.named_parameters(recurse=recurse):
            yield value

    def _apply(self, change: Callable[[Tensor], Tensor]) -> Any:
        for module in self.modules():
            for name, value in module._parameters.items():
                if value is not None:
                    with autograd.NoGrad():
                        module._parameters[name] = Parameter(change(value), value.requires_grad)
            for name, value in module._buffers.items():
                module._buffers[name] = change(value) if value is not None else None
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert all parameters and buffers."""

        def change(tensor: Any) -> Any:
            return tensor.to(*args, **kwargs)

        return self._apply(change)

    def cuda(self, device: Any = None) -> Any:
        """Move to the GPU."""
        del device
        return self.to("cuda")

    def cpu(self) -> Any:
        """Move to the host."""
        return self.to("cpu")

    def half(self) -> Any:
        """Convert to float16."""
        return self.to(DTYPES["float16"])

    def bfloat16(self) -> Any:
        """Convert to bfloat16."""
        return self.to(DTYPES["bfloat16"])

    def float(self) -> Any:
        """Convert to float32."""
        return self.to(DTYPES["float32"])

    def train(self, mode: bool = True) -> Any:
        """Say that this is training."""
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> Any:
        """Say that this is no training."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Say whether gradients of the parameters are wanted."""
        for value in self.parameters():
            value.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget gradients."""
        del set_to_none
        for value in self.parameters():
            value.grad = None


def _parameter(shape: tuple[int, ...], dtype: Any, device: Any) -> Parameter:
    return Parameter(FUNCTIONS["empty"](shape, dtype=dtype or default_dtype(), device=device))


class Linear(Module):
    """A matrix and a bias."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _parameter((out_features, in_features), dtype, device)
        self.bias = _parameter((out_features,), dtype, device) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the product with the matrix."""
        return functional.linear(x, self.weight, self.bias)


class LayerNorm(Module):
    """A normalization with weight and bias."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, **more: Any
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.eps = shape, eps
        kind, where = more.get("dtype"), more.get("device")
        self.weight = _parameter(shape, kind, where) if elementwise_affine else None
        self.bias = _parameter(shape, kind, where) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Return it normalized."""
        return functional.like_first(x, self.weight, self.bias)


class Embedding(Module):
    """Rows by their numbers."""

    def __init__(self, num_embeddings: int, embedding_dim: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = _parameter((num_embeddings, embedding_dim), dtype, device)

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows."""
        return functional.embedding(x, self.weight)


class Sequential(Module):
    """Modules one after the other."""

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        self._modules.update({str(i): module for i, module in enumerate(modules)})

    def forward(self, x: Any) -> Any:
        """Return what the last one gives."""
        for module in self._modules.values():
            x = module(x)
        return x


class ModuleList(Module):
    """A list of modules."""

    def __init__(self, modules: Any = ()) -> None:
        super().__init__()
        self._modules.update({str(i): module for i, module in enumerate(modules)})

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __getitem__(self, at: int) -> Any:
        return list(self._modules.values())[at]

    def append(self, module: Any) -> None:
        """Add one."""
        self._modules[str(len(self._modules))] = module


def _initializer(tensor: Tensor, *_: Any, **__: Any) -> Tensor:
    tensor.forget()
    return tensor


_INITIALIZERS = (
    "normal_", "uniform_", "zeros_", "ones_", "constant_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_",
    "kaiming_normal_", "trunc_normal_", "orthogonal_", "eye_",
)  # fmt: skip
INITIALIZERS = dict.fromkeys(_INITIALIZERS, _initializer)
MODULES: dict[str, Any] = {
    kind.__name__: kind for kind in (Parameter, Module, Linear, LayerNorm, Embedding, Sequential, ModuleList)
}
