"""Which torch a source gets: the real one where it is installed, else the stand-in; both when it asks, not before."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from importlib import metadata
from types import ModuleType
from typing import Any

from pipelines.kernels.gpu import Gpu
from pipelines.kernels.torch_version import STAND_IN, name_version

NAME = "torch"


class Torch:
    """Makes torch ready for one source, in a process that runs no other.

    Args:
        gpu: what torch says of the GPU.
        real: whether to give the real one; None is where it is installed.
    """

    def __init__(self, gpu: Gpu, *, real: bool | None = None) -> None:
        self._gpu = gpu
        self._real = is_installed() if real is None else real
        self._offered = False

    def install(self) -> None:
        """Decide what ``import torch`` will give."""
        self._offered = True
        if not self._real:
            from pipelines.kernels import torch_standin

            torch_standin.install(self._gpu)
        elif NAME in sys.modules:
            self._believe()
        else:
            sys.meta_path.insert(0, _Real(self._believe))

    @property
    def used(self) -> str | None:
        """Which torch the source has imported, ``stand-in`` or ``2.13.0 (CPU)``; None where it has not."""
        if not self._offered or NAME not in sys.modules:
            return None
        if not self._real:
            return STAND_IN
        return name_version(metadata.version(NAME))

    def _believe(self) -> None:
        from pipelines.kernels import real_torch

        real_torch.believe(self._gpu)


def is_installed() -> bool:
    """Say whether a source could import the real torch."""
    return NAME in sys.modules or importlib.util.find_spec(NAME) is not None


def warm() -> None:
    """Import what sources import besides Triton, before any child is forked: NumPy, and the stand-in for torch."""
    importlib.import_module("numpy")
    if not is_installed():
        importlib.import_module("pipelines.kernels.torch_standin")


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
