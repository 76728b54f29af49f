"""What a compilation is asked for, what it reports on the way, and what it gives."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from pipelines.kernels.library import MAX_MODULE, MODULE, library_revision
from pipelines.kernels.package import FILE_PATH, MAX_FILE_BYTES, PackageError, check_package
from pipelines.trace import MAX_FILES, Manifest, Message, Model, Name, StageTime, Toolchain, digest

MAX_SOURCE = MAX_FILE_BYTES


class CompileSpec(Model):
    """One compilation of one kernel for one target.

    With ``arguments`` the kernel is compiled as given: each maps to a type and an optional divisibility,
    ``*fp16:16``, ``i32``, ``fp32`` or ``None``. Without them the source's own launch code is run, and its
    ``launch``-th distinct launch is compiled (of ``kernel``, where one is named). ``files`` are the other files of
    the source's package by path; ``module`` names an installed library's module, whose file the source then is.
    ``options`` and ``constexprs`` override the launch's. A constexpr is a JSON value, a dtype as ``"tl.float16"``, or
    a function of the source as ``{"function": "name"}``.
    """

    source: Annotated[str, Field(max_length=MAX_SOURCE)]
    file: Annotated[str, Field(pattern=FILE_PATH)] = "kernel.py"
    files: Annotated[dict[Annotated[str, Field(pattern=FILE_PATH)], str], Field(max_length=MAX_FILES)] = Field(
        default_factory=dict
    )
    module: Annotated[str, Field(pattern=MODULE, max_length=MAX_MODULE)] | None = None
    kernel: Name | None = None
    arguments: dict[str, Name] | None = None
    constexprs: dict[str, JsonValue] = Field(default_factory=dict)
    launch: Annotated[int, Field(ge=0, le=10_000)] = 0
    target: Annotated[str, Field(pattern=r"^(sm_\d{2,3}|gfx[0-9a-f]{3,4})$")]
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_package(self) -> Self:
        if self.file in self.files:
            raise PackageError(f"{self.file} is there twice")
        check_package({self.file: self.source, **self.files})
        return self

    def compile_key(self, toolchain: Toolchain) -> str:
        """Return the hash of everything that determines the outputs: this, the toolchain, and ``pipelines`` itself."""
        data = {
            "spec": self.model_dump(mode="json", exclude={"source", "files"}),
            "texts": _texts_digest(self.source, tuple(sorted(self.files.items()))),
            "library": library_revision(self.module) if self.module else None,
            "toolchain": toolchain.model_dump(mode="json"),
            "revision": pipelines_revision(),
        }
        return digest(json.dumps(data, sort_keys=True).encode())


class LaunchFound(Model):
    """A distinct launch that the source's own code makes."""

    kernel: Name
    config: Message | None
    grid: tuple[int, ...] | None


@dataclass(frozen=True)
class Compiled:
    """A finished compilation.

    ``cacheable`` is False after a timeout, a limit or a dead worker: such an outcome may differ next time.
    """

    manifest: Manifest
    blobs: dict[str, bytes]
    times: tuple[StageTime, ...] = ()
    cacheable: bool = True
    launches: tuple[LaunchFound, ...] = ()


@dataclass(frozen=True)
class Event:
    """Progress of a compilation; ``interim`` comes with ``ready``: all passes and PTX, SASS still to come."""

    kind: Literal["launches", "stage", "pass", "artifact", "ready", "run"]
    data: dict[str, JsonValue] = field(default_factory=dict)
    interim: Compiled | None = None


@functools.lru_cache(maxsize=4)
def _texts_digest(source: str, files: tuple[tuple[str, str], ...]) -> str:
    """Return a hash of all texts; the launches of one source ask for it again and again."""
    return digest(json.dumps([source, *files]).encode())


@functools.cache
def pipelines_revision() -> str:
    """Return a hash of every source file of ``pipelines``, so that a change of ours never serves an old result."""
    root = Path(__file__).resolve().parent.parent
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        total.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()
