"""The exact files that make a trace on Triton's path, named by what they contain."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from pipelines.hook.tools import file_hash, package_hash
from pipelines.trace import Model, Name, Tool, Toolchain
from pipelines.triton_path.options import OptionField

TORCH = "torch"
# LLVM's AMD back end, its assembler included.
AMD_CODEGEN = "libtriton_amd_codegen.so"


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
        tools.append(Tool(name=path.name, version=described.versions.get(path.name, ""), sha256=file_hash(path)))
    return Toolchain(name=f"triton {described.triton}", tools=tuple(tools))


def without_torch(made: Toolchain) -> Toolchain:
    """Return what compiles alone: torch decides which launches there are, and compiles none of them."""
    return made.model_copy(update={"tools": tuple(tool for tool in made.tools if tool.name != TORCH)})


def _wheel_hash(name: str) -> str:
    """Return a hash over a wheel's files; raise RuntimeError where it was installed in another way."""
    found = package_hash(name, name)
    if found is None:
        raise RuntimeError(f"{name} was not installed from a wheel; run make setup")
    return found
