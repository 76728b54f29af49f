"""Start recording: at once where Triton is imported, else as soon as the program imports it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .guard import Guard

# What ``loupe capture`` tells the processes that it starts.
DIRECTORY = "LOUPE_RECORD"
KEEP_CACHE = "LOUPE_RECORD_KEEP_CACHE"

_started: dict[str, Any] = {}


def start(directory: str | os.PathLike[str], *, keep_cache: bool = False) -> None:
    """Record every kernel that is compiled from here on into a folder, which is made.

    Triton's cache is not asked, since a kernel found there is not compiled: each kernel is compiled once a process.
    With ``keep_cache`` it is asked as usual, and what it knows is not recorded. Calling this twice changes nothing.
    """
    guard = Guard()
    with guard:
        if _started:
            return
        folder = Path(directory).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        _started["folder"] = folder
        if not keep_cache:
            os.environ["TRITON_ALWAYS_COMPILE"] = "1"
        if "triton" in sys.modules:
            _install(folder, guard)
        else:
            sys.meta_path.insert(0, _Finder(folder, guard))


def start_from_environment() -> None:
    """Start as ``loupe capture`` asks for it, if it does."""
    directory = os.environ.get(DIRECTORY)
    if directory:
        start(directory, keep_cache=os.environ.get(KEEP_CACHE) == "1")


def _install(folder: Path, guard: Guard) -> None:
    from .recorder import Recorder

    recorder = Recorder(folder, guard)
    _started["recorder"] = recorder
    recorder.install()


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for ``import triton``, which is left to the other finders."""

    def __init__(self, folder: Path, guard: Guard) -> None:
        self._folder = folder
        self._guard = guard

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return Triton's own spec, whose loader also installs the recorder."""
        if fullname != "triton":
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                if spec.loader is not None:
                    self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: Any) -> None:
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            with self._guard:
                _install(self._folder, self._guard)

        loader.exec_module = exec_module
