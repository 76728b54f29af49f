"""Give Inductor's runtime modules to kernels that import them, whether torch is installed or not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_HERE = __name__.rpartition(".")[0]
# Exactly what kernels import; anything else of torch stays absent.
STANDS_FOR = {
    "torch._inductor": None,
    "torch._inductor.runtime": None,
    "torch._inductor.runtime.hints": f"{_HERE}.hints",
    "torch._inductor.runtime.triton_heuristics": f"{_HERE}.declared",
    "torch._inductor.runtime.triton_helpers": f"{_HERE}.helpers",
    "torch._inductor.triton_heuristics": f"{_HERE}.declared",
    "torch._inductor.triton_helpers": f"{_HERE}.helpers",
    "torch._inductor.ir": f"{_HERE}.hints",
}


class _Finder(MetaPathFinder, Loader):
    """Finds the modules above, and ``torch`` as an empty package where nothing else provides it."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        del path, target
        if name in STANDS_FOR or (name == "torch" and PathFinder.find_spec(name) is None):
            return ModuleSpec(name, self, is_package=STANDS_FOR.get(name) is None)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        real = STANDS_FOR.get(spec.name)
        return importlib.import_module(real) if real else None

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run: the module is either ours, which has run, or an empty package."""


def warm() -> None:
    """Import what stands in, before any child is forked."""
    for name in filter(None, STANDS_FOR.values()):
        importlib.import_module(name)


def install() -> None:
    """Let this process import them, before what is really there: the real ones would compile when they decorate."""
    if not any(isinstance(item, _Finder) for item in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for name in STANDS_FOR:
        sys.modules.pop(name, None)
