"""The exact files that make a trace on Triton's path, named by what they contain."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import distribution, version
from importlib.util import find_spec
from pathlib import Path

from pipelines.trace import Model, Name, Tool, Toolchain
from pipelines.triton_path.options import OptionField

TORCH = "torch"
# LLVM's AMD back end, its assembler included.
AMD_CODEGEN = "libtriton_amd_codegen.so"
# How long an installation may take: a file that is younger was edited afterwards.
_INSTALL_S = 600.0


class Described(Model):
    """``toolchain.json``: what the toolchain says of itself, from inside its own process; options by backend."""

    triton: Name
    options: dict[str, tuple[OptionField, ...]]
    tools: dict[str, Name]
    versions: dict[str, Name]


def triton_root() -> Path:
    """Return where Triton is installed, without importing it."""
    spec = find_spec("triton")
    if spec is None or spec.origin is None:
        raise RuntimeError("triton is not installed in this environment; run make setup")
    return Path(spec.origin).parent


def torch_root() -> Path | None:
    """Return where torch is installed, None where it is not, without importing it."""
    spec = find_spec("torch")
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def binaries() -> tuple[Path, ...]:
    """Return the only files that a compilation may execute."""
    root = triton_root() / "backends" / "nvidia" / "bin"
    return tuple(root / name for name in ("ptxas", "ptxas-blackwell", "nvdisasm"))


def libraries() -> tuple[Path, ...]:
    """Return the compilers that Triton loads into its process, each with an LLVM of its own."""
    return (triton_root() / "backends" / "amd" / "lib" / AMD_CODEGEN,)


def toolchain(described: Described) -> Toolchain:
    """Return the toolchain: Triton, and torch where it is there, by their files' hashes, binaries by their bytes."""
    tools = [Tool(name="triton", version=described.triton, sha256=_wheel_hash("triton"))]
    if torch_root() is not None:
        tools.append(Tool(name=TORCH, version=version(TORCH), sha256=_wheel_hash(TORCH)))
    for path in (*binaries(), *libraries()):
        tools.append(Tool(name=path.name, version=described.versions.get(path.name, ""), sha256=_file_hash(path)))
    return Toolchain(name=f"triton {described.triton}", tools=tuple(tools))


def without_torch(made: Toolchain) -> Toolchain:
    """Return what compiles alone: torch decides which launches there are, and compiles none of them."""
    return made.model_copy(update={"tools": tuple(tool for tool in made.tools if tool.name != TORCH)})


def _wheel_hash(name: str) -> str:
    """Return a hash over a wheel's files, as it records them; those edited since count as they are."""
    files = distribution(name).files or []
    record = next(file for file in files if file.name == "RECORD")
    installed = Path(str(record.locate())).stat().st_mtime + _INSTALL_S
    total = hashlib.sha256()
    for file in sorted(file for file in files if file.parts[0] == name and file.hash):
        path = Path(str(file.locate()))
        edited = path.exists() and path.stat().st_mtime > installed
        total.update(f"{file} {_file_hash(path) if edited or not file.hash else file.hash.value}\n".encode())
    return total.hexdigest()


@cache
def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
