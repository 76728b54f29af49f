"""The real torch, told that it has CUDA: its tensors say that they are on the GPU, their storage is the host's.

Tensors are real, values and all, up to ``REAL_BYTES``; larger ones are torch's own fake tensors, since references and
inputs of that size would take seconds and gigabytes on a CPU, while launch code hardly ever reads their values. The
operations on a fake tensor give fake tensors. Kernels do not run: ``assert_close`` and ``allclose`` agree.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils import _device

from pipelines.kernels.gpu import Gpu, agree, agreeing
from pipelines.kernels.operators import Operators

REAL_BYTES = 1 << 20
SEED = 0
_ALIGNMENT = 512  # of torch's caching allocator on CUDA
_FIRST_ADDRESS = 0x7F00_0000_0000
_CUDA, _CPU = torch.device("cuda", 0), torch.device("cpu")
_NO_VALUES = (
    "the values of this tensor are needed, and Loupe gives tensors of more than "
    f"{REAL_BYTES >> 20} MB no values; make it smaller, or give the arguments"
)
_FACTORIES = {
    getattr(torch, name)
    for name in (
        "empty", "zeros", "ones", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "eye",
        "empty_strided", "normal",
    )
}  # fmt: skip
_NEW = {getattr(torch.Tensor, name) for name in ("new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided")}

# Made once, before the first fork: a mode's first operation takes a second.
_fakes = FakeTensorMode(allow_non_fake_inputs=True)


def warm() -> None:
    """Do what the first use of torch would take its time for, with no thread left behind."""
    torch.set_num_threads(1)
    with _Believing():
        large = torch.empty(REAL_BYTES, device="cuda", requires_grad=True)
        ((large.reshape(1024, -1) @ large.reshape(-1, 1024)).softmax(-1) * 2).sum().backward()
        torch.nn.functional.gelu(torch.randn(8, 8, requires_grad=True)).sum().backward()


def believe(gpu: Gpu) -> None:
    """Make torch believe that it runs on a GPU, for the rest of this process."""
    for name, function in gpu.functions().items():
        setattr(torch.cuda, name, function)
    torch.version.cuda, torch.version.hip = (None, "6.4") if gpu.is_amd else ("12.8", None)
    torch.testing.assert_close = agree
    torch.allclose, torch.equal = agreeing, agreeing
    torch.compile = _decorate
    torch.set_default_device = _set_default_device
    torch.Generator = _Generator
    _device.DeviceContext.__init__ = _make_context
    FakeTensor.device = property(_device_of)
    for name, function in Operators(torch.autograd.Function, functools.partial(getattr, torch.ops)).functions().items():
        setattr(torch.library, name, function)
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    believing = _Believing()
    torch.autograd._engine_run_backward = _believed_backward(believing, torch.autograd._engine_run_backward)
    believing.__enter__()


def _believed_backward(believing: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    """Let Functions' backward believe too: a mode is off inside the call that it handles, ``Tensor.backward``."""

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        with believing:
            return run(*args, **kwargs)

    return run_backward


def _decorate(function: Any = None, **_: Any) -> Any:
    return function if function is not None else (lambda given: given)


def _set_default_device(_: Any) -> None:
    """All tensors are on the GPU."""


class _Generator(torch.Generator):
    def __new__(cls, device: Any = "cpu") -> Any:
        """Make one of the host's."""
        del device
        return super().__new__(cls, device="cpu")


def _make_context(context: Any, device: Any) -> None:
    context.device = torch.device(_host(device))
    context.old_device = None


def _device_of(tensor: Any) -> torch.device:
    """Return the GPU to everybody but torch itself, which works on the host."""
    if tensor.fake_mode.in_kernel_invocation:
        return torch.device("meta")
    own = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] == "torch"
    return tensor.fake_device if own else _CUDA


def _host(item: Any) -> Any:
    """Return the host for a GPU."""
    if isinstance(item, torch.device):
        return _CPU if item.type == "cuda" else item
    return _CPU if isinstance(item, str) and item.startswith("cuda") else item


class _Believing(TorchFunctionMode):
    """Answers for the GPU, and chooses between real and fake tensors."""

    def __init__(self) -> None:
        super().__init__()
        self._addresses: dict[int, int] = {}
        self._next = _FIRST_ADDRESS
        self._answers: dict[Any, Any] = {
            torch.Tensor.device.__get__: lambda _: _CUDA,
            torch.Tensor.is_cuda.__get__: lambda _: True,
            torch.Tensor.is_cpu.__get__: lambda _: False,
            torch.Tensor.get_device: lambda _: 0,
            torch.Tensor.cuda: lambda tensor, *_, **__: tensor,
            torch.Tensor.cpu: lambda tensor, *_, **__: tensor,
            torch.Tensor.pin_memory: lambda tensor, *_, **__: tensor,
            torch.Tensor.record_stream: lambda *_: None,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Answer one call of torch's."""
        del types
        options = dict(kwargs or {})
        if func in self._answers:
            return self._answers[func](*args, **options)
        if args and isinstance(args[0], FakeTensor):
            if func is torch.Tensor.data_ptr:
                return self._address(args[0])
            if func is torch.Tensor.__format__:
                return repr(args[0])
        if "device" in options:
            options["device"] = _host(options["device"])
        if func is torch.Tensor.to:
            args = tuple(_host(item) for item in args)
        options.pop("pin_memory", None)
        try:
            if (func in _FACTORIES or func in _NEW) and _is_large(func, args, options):
                with _fakes:
                    return func(*args, **options)
            return func(*args, **options)
        except DataDependentOutputException:
            raise RuntimeError(_NO_VALUES) from None

    def _address(self, tensor: FakeTensor) -> int:
        """Return where a fake tensor would be: each storage has a place of its own."""
        storage = tensor.untyped_storage()
        start = self._addresses.get(storage._cdata)
        if start is None:
            start = self._addresses[storage._cdata] = self._next
            self._next += (storage.nbytes() // _ALIGNMENT + 1) * _ALIGNMENT
        return int(start + tensor.storage_offset() * tensor.element_size())


def _is_large(func: Any, args: Any, options: dict[str, Any]) -> bool:
    """Say whether a new tensor has more bytes than real ones may have, by asking for it without storage."""
    if any(isinstance(item, FakeTensor) for item in args):
        return True
    try:
        probed = func(*args, **{k: v for k, v in options.items() if k not in ("generator", "out")} | {"device": "meta"})
    except (RuntimeError, NotImplementedError, TypeError):
        return False  # the call itself will tell
    return bool(math.prod(probed.shape) * probed.element_size() > REAL_BYTES)
