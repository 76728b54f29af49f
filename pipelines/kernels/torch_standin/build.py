"""Puts the stand-in's modules together under torch's names."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from pipelines.kernels.gpu import Gpu, agree, agreeing, range_marker
from pipelines.kernels.inductor.modules import STANDS_FOR
from pipelines.kernels.torch_standin import (
    arithmetic,
    autograd,
    creation,
    functional,
    functions,
    indexing,
    legacy,
    library,
    methods,
    networks,
    products,
    reductions,
    views,
)
from pipelines.kernels.torch_standin.core import FUNCTIONS, Tensor
from pipelines.kernels.torch_standin.device import Device, default_device, set_default_device
from pipelines.kernels.torch_standin.dtypes import (
    ALIASES,
    DTYPES,
    DType,
    FloatInfo,
    IntegerInfo,
    default_dtype,
    read_dtype,
    set_default_dtype,
)
from pipelines.kernels.torch_standin.errors import MissingModuleError, StandinModule
from pipelines.kernels.torch_standin.strides import Size

VERSION = "2.9.0+standin"
"""What ``torch.__version__`` says: launch code compares it, and the names here are of that release."""
ENTERED = (arithmetic, functions, indexing, methods, products, reductions, views)
"""The modules whose operations enter themselves when they are imported."""


class _Name:
    """A constant that only has a name: a layout, a memory format."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


def _numbers(version: Any) -> list[int]:
    text = ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
    return [int(part) for part in text.split("+")[0].split(".") if part.isdigit()]


class TorchVersion(str):
    """A version that compares by its numbers, also with strings."""

    def __lt__(self, other: Any) -> bool:
        return _numbers(self) < _numbers(other)

    def __le__(self, other: Any) -> bool:
        return _numbers(self) <= _numbers(other)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    __hash__ = str.__hash__


def _identity(value: Any) -> Any:
    return value


def _modules(gpu: Gpu) -> dict[str, dict[str, Any]]:
    """Return the contents of every module, by its name."""
    amd = gpu.is_amd
    checks = {"assert_close": agree, "assert_allclose": agree}
    flags = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True, fp32_precision="ieee")
    cudnn = {"allow_tf32": True, "benchmark": False, "deterministic": False, "enabled": True}
    modes = {"custom_fwd": library.passing, "custom_bwd": library.passing, "autocast": library.Autocast}
    grad_modes = {
        "no_grad": autograd.NoGrad,
        "enable_grad": autograd.EnableGrad,
        "set_grad_enabled": autograd.SetGradEnabled,
        "inference_mode": autograd.NoGrad,
        "is_grad_enabled": autograd.is_grad_enabled,
    }
    differentiation = {
        "Function": functions.Function,
        "grad": functions.grad,
        "backward": functions.backward,
        "Variable": _identity,
        **{name: grad_modes[name] for name in ("no_grad", "enable_grad", "set_grad_enabled")},
    }
    cuda = {**gpu.functions(), **legacy.types("cuda")}
    return {
        "torch": _top(grad_modes),
        "torch.version": {"__version__": VERSION, "cuda": None if amd else "12.8", "hip": "6.4" if amd else None},
        "torch.cuda": cuda,
        "torch.cuda.amp": modes,
        "torch.cuda.nvtx": {"range": range_marker, "range_push": _identity, "range_pop": lambda: None},
        "torch.amp": modes,
        "torch.autograd": differentiation,
        "torch.autograd.function": {
            "Function": functions.Function,
            "FunctionCtx": functions.Context,
            "once_differentiable": functions.once_differentiable,
        },
        "torch.backends": {},
        "torch.backends.cuda": {"matmul": flags},
        "torch.backends.cudnn": cudnn,
        "torch.testing": checks,
        "torch.library": library.operators.functions(),
        "torch.compiler": {
            "is_compiling": lambda: False,
            "disable": library.passing,
            "allow_in_graph": library.passing,
        },
        "torch._dynamo": {"disable": library.passing, "allow_in_graph": library.passing},
        # Libraries ask at import whether they run on several devices; one process is never part of a group.
        "torch.distributed": {
            "is_available": lambda: False,
            "is_initialized": lambda: False,
            "ProcessGroup": type("ProcessGroup", (), {}),
        },
        "torch.distributed.tensor": {"DTensor": type("DTensor", (), {})},
        "torch.profiler": {"record_function": range_marker},
        **_mathematics(),
        "torch.types": {"Device": Device, "Number": int | float | bool},
        "torch._C": {},
        "torch.utils": {},
        "torch.utils.checkpoint": {"checkpoint": lambda function, *args, **_: function(*args)},
    }


def _mathematics() -> dict[str, dict[str, Any]]:
    """Return the contents of the modules of networks and of functions, by the module's name."""
    return {
        "torch.nn": dict(networks.MODULES),
        "torch.nn.functional": dict(functional.FUNCTIONAL),
        "torch.nn.init": dict(networks.INITIALIZERS),
        "torch.nn.parameter": {"Parameter": networks.Parameter},
        "torch.nn.modules": {"Module": networks.Module},
        "torch.linalg": {"norm": FUNCTIONS["norm"], "vector_norm": FUNCTIONS["norm"]},
        "torch.special": {name: FUNCTIONS[name] for name in ("exp2", "expm1", "erf", "log1p", "softmax")},
    }


def _top(grad_modes: dict[str, Any]) -> dict[str, Any]:
    """Return the contents of ``torch`` itself."""
    names = ("strided", "contiguous_format", "preserve_format")
    FUNCTIONS.update({name: _Name(name) for name in names})
    operations = {name: item for name, item in FUNCTIONS.items() if not name.startswith("_")}
    return {
        **DTYPES,
        **{alias: DTYPES[name] for alias, name in ALIASES.items()},
        **operations,
        **grad_modes,
        "__version__": TorchVersion(VERSION),
        "Tensor": Tensor,
        **legacy.types("cpu"),
        "Size": Size,
        "dtype": DType,
        "device": Device,
        "Generator": creation.Generator,
        "finfo": FloatInfo,
        "iinfo": IntegerInfo,
        "manual_seed": creation.manual_seed,
        "seed": lambda: creation.SEED,
        "initial_seed": lambda: creation.SEED,
        "set_default_device": set_default_device,
        "get_default_device": default_device,
        "set_default_dtype": lambda kind: set_default_dtype(read_dtype(kind)),
        "get_default_dtype": default_dtype,
        "set_float32_matmul_precision": lambda _: None,
        "get_float32_matmul_precision": lambda: "highest",
        "use_deterministic_algorithms": lambda *_, **__: None,
        "set_printoptions": lambda *_, **__: None,
        "get_num_threads": lambda: 1,
        "set_num_threads": lambda _: None,
        "allclose": agreeing,
        "isclose": lambda a, b, **_: FUNCTIONS["ones_like"](FUNCTIONS["eq"](a, b)),
        "compile": library.passing,
        "autocast": library.Autocast,
        "is_autocast_enabled": lambda *_: False,
        "get_device_module": lambda *_: sys.modules["torch.cuda"],
        "inf": float("inf"),
        "nan": float("nan"),
        "pi": 3.141592653589793,
        **{name: functional.FUNCTIONAL[name] for name in ("dropout", "rms_norm", "layer_norm")},
    }


def build(gpu: Gpu) -> dict[str, ModuleType]:
    """Make the modules, each also an attribute of the one that it is in."""
    made: dict[str, ModuleType] = {name: StandinModule(name, held) for name, held in _modules(gpu).items()}
    made |= {name: importlib.import_module(of) if of else StandinModule(name, {}) for name, of in STANDS_FOR.items()}
    made["torch.ops"] = library.OperatorSpaces("torch.ops", {})
    for name, module in made.items():
        outer, _, own = name.rpartition(".")
        if outer:
            setattr(made[outer], own, module)
    return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds torch and what is in it, before any other finder."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._built: dict[str, ModuleType] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a module of the stand-in.

        Raises:
            MissingModuleError: a module of torch's that it does not have.
        """
        del path, target
        if fullname.partition(".")[0] != "torch":
            return None
        self._built = self._built or build(self._gpu)
        if fullname not in self._built:
            raise MissingModuleError(fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module, and put those inside it beside it, since ``import torch`` brings them all."""
        for name, module in self._built.items():
            sys.modules.setdefault(name, module)
        return self._built[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """All contents are there."""
        for held in self._built.values():
            if held.__spec__ is None:
                held.__spec__ = importlib.machinery.ModuleSpec(held.__name__, self, is_package=True)
        del module


def install(gpu: Gpu) -> None:
    """Let ``import torch`` find the stand-in."""
    sys.meta_path.insert(0, Finder(gpu))
