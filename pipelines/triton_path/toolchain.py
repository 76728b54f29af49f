"""The exact files that make a trace on Triton's path, named by what they contain."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

from pydantic import JsonValue

from pipelines.trace import Model, Name, Tool, Toolchain


class OptionField(Model):
    """A field of the backend's own options class, with the value that the backend gives it by itself."""

    name: Name
    type: Name
    default: JsonValue


class Described(Model):
    """``toolchain.json``: what the toolchain says of itself, from inside its own process."""

    triton: Name
    options: tuple[OptionField, ...]
    tools: dict[str, Name]
    versions: dict[str, Name]


def triton_root() -> Path:
    """Return where Triton is installed, without importing it."""
    spec = find_spec("triton")
    if spec is None or spec.origin is None:
        raise RuntimeError("triton is not installed in this environment; run make setup")
    return Path(spec.origin).parent


def binaries() -> tuple[Path, ...]:
    """Return the only files that a compilation may execute."""
    root = triton_root() / "backends" / "nvidia" / "bin"
    return tuple(root / name for name in ("ptxas", "ptxas-blackwell", "nvdisasm"))


def toolchain(described: Described) -> Toolchain:
    """Return the toolchain: Triton by its wheel's own record of its files' hashes, the binaries by their bytes."""
    lines = (distribution("triton").read_text("RECORD") or "").splitlines()
    record = "\n".join(sorted(line for line in lines if line.startswith("triton/") and "sha256=" in line))
    tools = [Tool(name="triton", version=described.triton, sha256=hashlib.sha256(record.encode()).hexdigest())]
    for path in binaries():
        tools.append(Tool(name=path.name, version=described.versions.get(path.name, ""), sha256=_file_hash(path)))
    return Toolchain(name=f"triton {described.triton}", tools=tuple(tools))


@cache
def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
