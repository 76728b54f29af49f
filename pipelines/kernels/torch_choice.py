"""Which torch a source gets: the real one where it is installed, else the stand-in; both when it asks, not before."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pipelines.kernels.gpu import Gpu

NAME = "torch"


class Torch:
    """Makes torch ready for one source; ``description`` is which it was, None until the source imports it."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._finder: Any = None
        self._ready = False

    def install(self) -> None:
        """Decide what ``import torch`` will give."""
        if NAME in sys.modules:
            self._believe()
        elif importlib.util.find_spec(NAME) is None:
            from pipelines.kernels import torch_standin

            self._finder = torch_standin.install(self._gpu)
        else:
            self._finder = _Real(self._believe)
            sys.meta_path.insert(0, self._finder)

    def remove(self) -> None:
        """Let imports go their own way again."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    @property
    def description(self) -> str | None:
        """Which torch the source has imported: ``stand-in`` or ``2.13.0 (CPU)``."""
        if self._ready:
            from pipelines.kernels import real_torch

            return real_torch.version()
        return "stand-in" if NAME in sys.modules else None

    def _believe(self) -> None:
        from pipelines.kernels import real_torch

        self._ready = True
        real_torch.believe(self._gpu)


class _Real(importlib.abc.MetaPathFinder):
    """Finds the real torch, and calls ``ready`` once it has been imported."""

    def __init__(self, ready: Any) -> None:
        self._ready = ready

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find torch as Python does."""
        if fullname != NAME:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._ready)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads as another loader does, then calls ``ready``."""

    def __init__(self, loader: Any, ready: Any) -> None:
        self._loader, self._then = loader, ready

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Make the module."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module, and tell."""
        self._loader.exec_module(module)
        self._then()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
