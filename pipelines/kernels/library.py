"""The file of an installed library's module, found by its name without importing anything."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sysconfig
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.kernels.package import MAX_FILE_BYTES, PackageError, check_path

MODULE = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,15}$"
MAX_MODULE = 200

# A library with more files is told apart from its next version by these.
_MAX_FILES = 20_000
_FRESH_S = 2.0


class LibraryError(PackageError):
    """There is no such module, or it is no Python source that can be shown; the message says which."""


@dataclass(frozen=True)
class LibraryFile:
    """A module's file: its path below the folder of installed packages, and its text."""

    path: str
    text: str


def site_directories() -> tuple[Path, ...]:
    """Return where libraries are installed for this Python."""
    paths = sysconfig.get_paths()
    return tuple(dict.fromkeys(Path(paths[name]) for name in ("purelib", "platlib")))


def find_library_file(module: str, sites: Sequence[Path] | None = None) -> LibraryFile:
    """Return a module's file, looked up by path only: no parent package is imported, nothing runs.

    Raises:
        LibraryError: there is none inside the folders of installed packages, or it is no source in UTF-8.
    """
    if len(module) > MAX_MODULE or not re.fullmatch(MODULE, module):
        raise LibraryError(f"{module[:MAX_MODULE]!r} is no module's name, such as liger_kernel.ops.rms_norm")
    where = site_directories() if sites is None else tuple(sites)
    for site in where:
        for path in _places(module):
            if (site / path).is_file():
                return _read(module, site, path)
    raise LibraryError(_missing(module, where))


def _places(module: str) -> Iterator[str]:
    """Yield where a module may lie below an installation's folder; a package comes before a file, as in Python."""
    path = module.replace(".", "/")
    yield f"{path}/__init__.py"
    yield f"{path}.py"


def _read(module: str, site: Path, path: str) -> LibraryFile:
    file = site / path
    if not file.resolve().is_relative_to(site.resolve()):
        raise LibraryError(f"{module} lies outside the installed packages: {path} is a link")
    check_path(path)
    with file.open("rb") as opened:
        data = opened.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise LibraryError(f"{path} has more than {MAX_FILE_BYTES >> 20} MB")
    try:
        return LibraryFile(path, data.decode("utf-8").replace("\r\n", "\n"))
    except UnicodeDecodeError:
        raise LibraryError(f"{path} is not UTF-8") from None


def _missing(module: str, sites: Sequence[Path]) -> str:
    parent, _, name = module.rpartition(".")
    for site in sites:
        folder = site.joinpath(*parent.split(".")) if parent else site
        if folder.is_dir() and any(folder.glob(f"{name}.*.so")):
            return f"{module} is compiled code, not Python source"
        if (folder / name).is_dir():
            return f"{module} is a folder without code of its own; name one of its modules"
    top = module.partition(".")[0]
    if any((site / top).exists() or (site / f"{top}.py").exists() for site in sites):
        return f"{top} is installed where Loupe runs, but has no module {module}"
    return f"there is no module {module}: no library {top} is installed where Loupe runs"


def library_revision(module: str) -> str:
    """Return a hash of names, sizes and times of a library's files, so that another version is another input."""
    return _revision(module.partition(".")[0], int(time.monotonic() / _FRESH_S))


@functools.lru_cache(maxsize=32)
def _revision(library: str, _: int) -> str:
    total = hashlib.sha256()
    for site in site_directories():
        for number, path in enumerate(_sources(site, library)):
            if number == _MAX_FILES:
                break
            found = path.stat()
            total.update(f"{path.relative_to(site)} {found.st_size} {found.st_mtime_ns}\n".encode())
    return total.hexdigest()


def _sources(site: Path, library: str) -> Iterator[Path]:
    if (site / f"{library}.py").is_file():
        yield site / f"{library}.py"
    for folder, folders, names in os.walk(site / library):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))
