"""The files that compile, named by what they contain."""

from __future__ import annotations

import functools
import hashlib
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

# How long an installation may take: a file that is younger was edited afterwards.
_INSTALL_S = 600.0
_CHUNK = 1 << 20


@functools.cache
def package_hash(name: str, package: str) -> str | None:
    """Return a hash over a package's files as its wheel records them; those edited since count as they are.

    ``name`` is the distribution's, ``package`` its folder. None where it was not installed from a wheel.
    """
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return None
    record = next((file for file in files if file.name == "RECORD"), None)
    if record is None:
        return None
    installed = Path(str(record.locate())).stat().st_mtime + _INSTALL_S
    total = hashlib.sha256()
    for file in sorted(file for file in files if file.parts[0] == package and file.hash):
        path = Path(str(file.locate()))
        edited = path.exists() and path.stat().st_mtime > installed
        total.update(f"{file} {file_hash(path) if edited or not file.hash else file.hash.value}\n".encode())
    return total.hexdigest()


@functools.cache
def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


@functools.cache
def describe_tool(path: str) -> dict[str, str]:
    """Return a program's name, version and hash."""
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    last = (said.strip().splitlines() or [""])[-1]
    return {"name": Path(path).name, "version": last[:500], "sha256": file_hash(Path(path))}


def describe_triton(triton: Any) -> dict[str, str]:
    """Return Triton's name, version and hash; that of its compiled part where it was not installed from a wheel."""
    from triton._C import libtriton

    found = next((h for name in ("triton", "pytorch-triton", "pytorch-triton-rocm") if (h := _hash_of(name))), None)
    return {"name": "triton", "version": triton.__version__, "sha256": found or file_hash(Path(libtriton.__file__))}


def _hash_of(name: str) -> str | None:
    return package_hash(name, "triton")
