"""Recordings of ``pipelines.hook``: folders that somebody's program left, read as hostile and made into traces."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from pipelines.sandbox import Limits, Outcome, Slot
from pipelines.trace import (
    Failure,
    Kernel,
    Manifest,
    Model,
    Name,
    SourceFile,
    Target,
    Tool,
    Toolchain,
    TraceError,
)
from pipelines.triton_path.output import ErrorPlace, ForgedOutputError, LaunchMade, Output, Run, read_json, read_output
from pipelines.triton_path.paths import MAX_ROOTS, Paths, PathsError
from pipelines.triton_path.result import Blobs, build_manifest, read_dump
from pipelines.triton_path.spec import MAX_SOURCE, Compiled, CompileSpec
from pipelines.triton_path.targets import CHIPS

MAX_COMPILES = 4_000
MAX_FILES = 32

_FOLDER = re.compile(r"\d{1,10}-[0-9a-f]{8}-\d{1,7}")
_PATH = Annotated[str, Field(min_length=1, max_length=4096)]
_UNFINISHED = "the program ended while it compiled this kernel: it crashed, was stopped, or the compiler aborted it"
_HINT = "What the program printed last says more; the IR before the failing pass is kept as far as it was written."


class RecordingError(ValueError):
    """A recording that no trace can be made of; the message says which and why."""


class _TargetMade(Model):
    backend: Literal["cuda", "hip"]
    arch: Annotated[str, Field(pattern=r"^(\d{2,3}|gfx[0-9a-f]{3,5})$")]
    warp_size: Annotated[int, Field(ge=1, le=1024)]

    @property
    def target(self) -> Target:
        arch = f"sm_{self.arch}" if self.backend == "cuda" else self.arch
        return Target(arch=arch, backend=self.backend, warp_size=self.warp_size)


class CompileMade(Model):
    """``compile.json``: where the kernel is from, for which chip it was compiled, by which files."""

    schema_: Literal["loupe.recording/1"] = Field(alias="schema")
    at: float
    file: _PATH
    line: int | None
    module: Name | None
    target: _TargetMade
    roots: Annotated[
        tuple[tuple[_PATH, Annotated[str, Field(pattern=r"^(<[a-z-]{1,20}>)?$")]], ...], Field(max_length=MAX_ROOTS)
    ]
    group: Annotated[str, Field(pattern=r"^[0-9a-f-]{1,64}$")] | None
    tools: Annotated[tuple[Tool, ...], Field(min_length=1, max_length=16)]
    ended: bool
    files: Annotated[dict[_PATH, Annotated[str, Field(pattern=r"^source-\d{1,3}$")]], Field(max_length=MAX_FILES)] = (
        Field(default_factory=dict)
    )


@dataclass(frozen=True)
class Recorded:
    """A recording read: the trace, and the name of the group of the autotuner that asked for it."""

    name: str
    compiled: Compiled
    group: str | None
    cubin: bytes | None
    paths: Paths


def find(directory: Path) -> list[Path]:
    """Return a recording's folders, one for each compilation, in the order in which they began as far as names tell.

    Raises:
        RecordingError: there are none, or more than are imported at once.
    """
    try:
        names = [entry.name for entry in os.scandir(directory) if _FOLDER.fullmatch(entry.name)]
    except OSError as error:
        raise RecordingError(f"{directory} cannot be read: {error.strerror}") from None
    if len(names) > MAX_COMPILES:
        raise RecordingError(
            f"{directory} holds {len(names)} compilations; at most {MAX_COMPILES} are imported at once"
        )
    return [directory / name for name in sorted(names, key=_order)]


def _order(name: str) -> tuple[str, int]:
    process, _, number = name.rpartition("-")
    return process, int(number)


def read(folder: Path) -> Recorded:
    """Return the trace of one compilation, without SASS.

    Raises:
        RecordingError: the folder holds what the hook does not write.
    """
    try:
        with _slot(folder) as slot:
            made = read_json(slot, "compile.json", CompileMade)
            if made is None:
                raise RecordingError(f"{folder.name}: there is no compile.json, so nothing was recorded")
            output = read_output(slot)
            source = _source(slot, "source.out")
            files = {path: _source(slot, f"{name}.out") for path, name in made.files.items()}
        return _recorded(folder.name, made, output, source, files)
    except (ForgedOutputError, PathsError, ValidationError, TraceError) as error:
        words = str(error).split("\n", 1)[0]
        raise RecordingError(f"{folder.name}: this is not what the hook writes: {words}") from None
    except OSError as error:
        raise RecordingError(f"{folder.name} cannot be read: {error.strerror}") from None


@contextmanager
def _slot(folder: Path) -> Iterator[Slot]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield Slot(folder, descriptor)
    finally:
        os.close(descriptor)


def _source(slot: Slot, name: str) -> bytes:
    data = slot.read(name, 2 * MAX_SOURCE)
    if data is None:
        raise ForgedOutputError(f"{name} is missing, or larger than a source can be")
    return data


def _recorded(name: str, made: CompileMade, output: Output, source: bytes, files: dict[str, bytes]) -> Recorded:
    paths = Paths(made.roots)
    _replace_paths(output, paths)
    blobs = Blobs()
    toolchain = Toolchain(name=f"triton {made.tools[0].version}", tools=tuple({t.name: t for t in made.tools}.values()))
    outcome = Outcome("ok" if made.ended else "exit", None, None, 0.0, 0.0)
    run = Run(output, outcome, Limits(), read_dump(output))
    manifest = build_manifest(_spec(made), toolchain, run, blobs)
    manifest = manifest.model_copy(
        update={
            "kernel": _kernel(manifest, made, paths, blobs, source, files),
            "target": made.target.target,
            "failure": manifest.failure if made.ended else _unfinished(manifest.failure),
        }
    )
    manifest.check()
    kept = {digest: blobs.by_digest[digest] for digest in manifest.digests()}
    compiled = Compiled(manifest, kept, tuple(output.times), cacheable=False)
    return Recorded(name, compiled, made.group, output.artifacts.get("cubin"), paths)


def _spec(made: CompileMade) -> CompileSpec:
    """Return a spec for a chip of the same backend: the recording's own may be one that is not compiled for here."""
    arch = made.target.target.arch
    if arch not in CHIPS:
        arch = next(name for name, chip in CHIPS.items() if chip.target.backend == made.target.backend)
    return CompileSpec(source="", target=arch)


def _kernel(
    manifest: Manifest, made: CompileMade, paths: Paths, blobs: Blobs, source: bytes, files: dict[str, bytes]
) -> Kernel:
    file = paths.string(made.file)
    return manifest.kernel.model_copy(
        update={
            "file": file[:512],
            "source": blobs.keep(source),
            "files": tuple(
                SourceFile(name=paths.string(path)[:512], digest=blobs.keep(text)) for path, text in files.items()
            ),
            "module": made.module if file.startswith("<site-packages>") else None,
        }
    )


def _unfinished(failure: Failure | None) -> Failure:
    stage, address = (failure.stage, failure.address) if failure else (None, None)
    return Failure(kind="abort", stage=stage, address=address, message=_UNFINISHED, hint=_HINT)


def _replace_paths(output: Output, paths: Paths) -> None:
    output.dump = paths.text(output.dump)
    output.stages = {name: paths.text(text) for name, text in output.stages.items()}
    output.artifacts = {
        name: paths.binary(data) if name in ("cubin", "hsaco") else paths.text(data)
        for name, data in output.artifacts.items()
    }
    output.metadata = {key: paths.json(value) for key, value in output.metadata.items()}
    output.commands = [paths.string(command) for command in output.commands]
    if output.launch:
        told: Any = paths.json(output.launch.model_dump(mode="json"))
        output.launch = LaunchMade.model_validate_json(json.dumps(told))
    if output.error:
        places = tuple(_place(place, paths) for place in output.error.places)
        message = paths.string(output.error.message)
        output.error = output.error.model_copy(update={"places": places, "message": message})


def _place(place: ErrorPlace, paths: Paths) -> ErrorPlace:
    file = paths.string(place.file) if place.file else None
    return place.model_copy(update={"file": file, "message": paths.string(place.message)})
