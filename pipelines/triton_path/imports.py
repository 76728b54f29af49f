"""How a package's files are imported inside the confined child: under their paths in it, on every machine the same."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import sys
import types
from contextlib import suppress
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import FileFinder, ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

from pipelines.kernels.package import import_root, module_name
from pipelines.triton_path import slot

# The package that files without a folder around them make, so that relative imports among them work.
UNNAMED = "package"

_LOUPE = __name__.partition(".")[0]


@dataclass(frozen=True)
class Sources:
    """The user's files: where to start, what else is there, and the installed module that the first one is."""

    file: str
    files: frozenset[str] = frozenset()
    module: str | None = None

    @classmethod
    def of(cls, request: dict[str, Any]) -> Sources:
        """Read them from a request."""
        return cls(request["file"], frozenset(request["files"]), request["module"])

    @property
    def own(self) -> frozenset[str]:
        """Every file, by the name that its code carries."""
        return self.files | {self.file}

    @property
    def alone(self) -> bool:
        """Whether this is one file, of no package."""
        return not self.files and self.module is None and "/" not in self.file


@dataclass(frozen=True)
class Entry:
    """The module that the first file is: its name, the package that its relative imports start from, its file."""

    name: str
    package: str
    origin: str


def compile_source(data: bytes, name: str) -> types.CodeType:
    """Compile a file under its name in the package, and keep its text."""
    keep_text(name, data)
    return compile(data, name, "exec", dont_inherit=True)


def keep_text(name: str, data: bytes) -> None:
    """Have a file's text at hand for Triton, wherever the source may move to."""
    with suppress(SyntaxError, UnicodeDecodeError):
        text = importlib.util.decode_source(data)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)


class PackageLoader(SourceFileLoader):
    """Loads a file of the slot under its name in the package."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> types.CodeType:  # type: ignore[override]  # the stub has a static method, Python calls it on the loader
        """Compile a module's text."""
        return compile_source(bytes(data), os.path.relpath(os.fsdecode(path), slot.directory()))


class _Installed(MetaPathFinder):
    """Finds one installed module's text in the slot; all else about it is as it is installed."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return the module's spec, None for any other module."""
        found = PathFinder.find_spec(fullname, path, target) if fullname == self._sources.module else None
        if found is None:
            return None
        loader = PackageLoader(fullname, str(slot.directory() / self._sources.file))
        spec = ModuleSpec(fullname, loader, origin=found.origin)
        spec.has_location = True
        spec.submodule_search_locations = found.submodule_search_locations
        return spec


class _Given(MetaPathFinder):
    """Finds the package's own files before anything installed, also where a folder has no ``__init__.py``."""

    def __init__(self, roots: list[str]) -> None:
        self._roots = roots

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a top-level module, None for any other."""
        return PathFinder.find_spec(fullname, self._roots, target) if path is None else None


def prepare(sources: Sources) -> Entry:
    """Make the files importable and import the packages around the first one, as ``python -m`` would.

    Raises:
        BaseException: whatever those packages' own code raised.
    """
    sys.path_hooks.insert(0, _finder_of_slot)
    if sources.module is not None:
        sys.meta_path.insert(0, _Installed(sources))
        return _enter(sources, sources.module)
    root = import_root(sources.file, sources.own)
    below = sources.file.removeprefix(root + "/" if root else "")
    name = module_name(below)
    if "/" not in below or "__init__.py" in sources.own:
        _make_unnamed("__init__.py" in sources.own)
        name = UNNAMED if below == "__init__.py" else f"{UNNAMED}.{name}"
    folder = str((slot.directory() / sources.file).parent)
    roots = list(dict.fromkeys(str(slot.directory() / part) for part in (root, "")))
    sys.path[:0] = roots
    sys.meta_path.insert(0, _Given(roots))
    if folder not in sys.path:  # a script finds its neighbours, but in a package no module may be hidden by them
        sys.path.insert(len(sys.path) if _in_package(sources) else 0, folder)
    return _enter(sources, name)


def loaded() -> list[dict[str, Any]]:
    """Return the namespaces of the package's files that have been imported so far, in the order of import."""
    modules = [module for module in list(sys.modules.values()) if type(module) is types.ModuleType]
    return [vars(module) for module in modules if isinstance(vars(module).get("__loader__"), PackageLoader)]


class Hidden:
    """Takes this project's own modules out of the way of a package of the same name, and brings them back."""

    def __init__(self, sources: Sources) -> None:
        wanted = any(_LOUPE in name.removesuffix(".py").split("/") for name in sources.own)
        self._modules = {k: v for k, v in sys.modules.items() if wanted and k.partition(".")[0] == _LOUPE}

    def __enter__(self) -> None:
        for name in self._modules:
            del sys.modules[name]

    def __exit__(self, *_: object) -> None:
        sys.modules.update(self._modules)


def _finder_of_slot(path: str) -> FileFinder:
    if not Path(path).is_relative_to(slot.directory()):
        raise ImportError(path)
    return FileFinder(path, (PackageLoader, [".py"]))


def _in_package(sources: Sources) -> bool:
    return f"{sources.file.rpartition('/')[0]}/__init__.py" in sources.own


def _enter(sources: Sources, name: str) -> Entry:
    is_package = sources.file.endswith("/__init__.py") or sources.file == "__init__.py"
    package = name if is_package else name.rpartition(".")[0]
    origin = slot.directory() / sources.file
    if sources.module is not None:
        found = importlib.util.find_spec(name)
        origin = Path(found.origin) if found and found.origin else origin
    if around := name.rpartition(".")[0]:
        importlib.import_module(around)
    return Entry(name, package, str(origin))


def _make_unnamed(has_init: bool) -> None:
    root = str(slot.directory())
    if has_init:
        file = str(slot.directory() / "__init__.py")
        loader = PackageLoader(UNNAMED, file)
        spec = importlib.util.spec_from_file_location(UNNAMED, file, loader=loader, submodule_search_locations=[root])
        assert spec is not None  # noqa: S101 - it is given a loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[UNNAMED] = module
        loader.exec_module(module)
        return
    module = types.ModuleType(UNNAMED)
    module.__path__ = [root]
    sys.modules[UNNAMED] = module
