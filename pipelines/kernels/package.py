"""The files of a package: which paths and sizes are taken, and which of the files one would start with.

Nothing here runs or imports what the files hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

MAX_FILE_BYTES = 1 << 20
MAX_PACKAGE_BYTES = 4 << 20
MAX_PACKAGE_FILES = 256
MAX_PATH = 400
# A path inside a package: plain names, folders without a dot, ending in .py.
FILE_PATH = r"^(?:[A-Za-z0-9_][A-Za-z0-9_-]{0,99}/){0,8}[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.py$"

# What a compilation itself writes beside the files.
_TAKEN = ("stdout", "stderr")
_PATH = re.compile(FILE_PATH)
_MAIN = re.compile(r"^if\s+__name__\s*==\s*[\"']__main__[\"']", re.MULTILINE)
_KERNEL = re.compile(r"^[ \t]*@(?:\w+\.)*(?:jit|autotune)\b", re.MULTILINE)
_LAUNCH = re.compile(r"\]\(")
_DEFINED = re.compile(r"^[ \t]*def\s+(\w+)", re.MULTILINE)
_SUBSCRIPTED = re.compile(r"\b(\w+)\[")


class PackageError(ValueError):
    """Files that make no package; the message says what to change."""


def check_package(files: Mapping[str, str]) -> None:
    """Raise PackageError where a path or a size is not taken, the entry file counted with the others."""
    if len(files) > MAX_PACKAGE_FILES:
        raise PackageError(f"there are {len(files)} files, and a package has at most {MAX_PACKAGE_FILES}")
    total = 0
    for path, text in files.items():
        check_path(path)
        size = len(text.encode("utf-8", errors="surrogatepass"))
        if size > MAX_FILE_BYTES:
            raise PackageError(f"{path} has more than {MAX_FILE_BYTES >> 20} MB in UTF-8")
        total += size
    if total > MAX_PACKAGE_BYTES:
        raise PackageError(f"the files have more than {MAX_PACKAGE_BYTES >> 20} MB of text together")


def check_path(path: str) -> None:
    """Raise PackageError for a path that no file of a package may have."""
    if len(path) > MAX_PATH or not _PATH.fullmatch(path):
        raise PackageError(
            f"{path[:200]!r} is no path of a Python file in a package, such as pkg/util.py: relative, with plain names"
        )
    if path.partition("/")[0] in _TAKEN:
        raise PackageError(f"{path}: the top folder of a package cannot be named {path.partition('/')[0]}")


def module_name(path: str) -> str:
    """Return the module that a file of a package is: ``pkg/ops/norm.py`` is ``pkg.ops.norm``."""
    parts = path.removesuffix(".py").split("/")
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def import_root(path: str, paths: Iterable[str]) -> str:
    """Return the folder from which a file is imported, ``""`` for the root.

    It is where the outermost package around the file lies, as Python's import system sees it: above all folders that
    have an ``__init__.py``. Without any it is the root, since all folders are then namespace packages.
    """
    packages = {PurePosixPath(item).parent for item in paths if item.rpartition("/")[2] == "__init__.py"}
    around = [folder for folder in PurePosixPath(path).parents if folder in packages]
    if not around or around[-1] == PurePosixPath():
        return ""
    outside = around[-1].parent
    return "" if outside == PurePosixPath() else str(outside)


def entry_candidates(files: Mapping[str, str]) -> list[str]:
    """Return the files that one would start with, the likeliest first.

    Those that launch kernels under ``__main__`` come first, then those that launch some of their own, then those that
    launch another file's, then those that define some.
    """
    return [path for _, path in _ranked(files)]


def find_entry(files: Mapping[str, str]) -> str:
    """Return the file to start with: the only one, or the only one that is likelier than all others.

    Raises:
        PackageError: several could be meant.
    """
    ranked = _ranked(files) or [(0, path) for path in files]
    best = [path for rank, path in ranked if rank == ranked[0][0]]
    if len(best) > 1:
        raise PackageError(f"say which file to start with: {', '.join(path for _, path in ranked[:8])}")
    return best[0]


def _ranked(files: Mapping[str, str]) -> list[tuple[int, str]]:
    defined = {name for text in files.values() if _KERNEL.search(text) for name in _DEFINED.findall(text)}
    return sorted((rank, path) for path, text in files.items() if (rank := _rank(text, defined)) is not None)


def _rank(text: str, defined: set[str]) -> int | None:
    kernels, launches = bool(_KERNEL.search(text)), bool(_LAUNCH.search(text))
    if _MAIN.search(text) and (kernels or launches or "triton" in text):
        return 0
    if kernels:
        return 1 if launches else 3
    return 2 if launches and not defined.isdisjoint(_SUBSCRIPTED.findall(text)) else None
