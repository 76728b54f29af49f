"""The data model of a trace: what every room shares.

A manifest names its texts by SHA-256, so it is small, and a text that several passes share is stored once.
The file that carries a manifest with its texts is in ``pipelines.tracefile``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, ValidationError

from pipelines.addenda import AddedPass, AddedStage, Addendum, StageTime
from pipelines.json_values import JsonData, json_safe
from pipelines.records import (
    MAX_ARGUMENTS,
    MAX_FILES,
    MAX_HEADER,
    MAX_PASSES,
    Argument,
    Artifact,
    Diagnostic,
    Digest,
    Failure,
    Kernel,
    Launch,
    LaunchArgument,
    Message,
    Model,
    Name,
    Parent,
    Pass,
    Resources,
    SourceFile,
    Stage,
    StageName,
    Symbol,
    Target,
    Tool,
    Toolchain,
    remove_later_fields,
)

__all__ = [
    "MAX_ADDRESS",
    "MAX_ARGUMENTS",
    "MAX_DIAGNOSTICS",
    "MAX_FILES",
    "MAX_HEADER",
    "MAX_MEMBERS_DEPTH",
    "MAX_NESTING",
    "MAX_PASSES",
    "MAX_STAGES",
    "SCHEMA",
    "SOURCE_PREFIX",
    "Addendum",
    "Argument",
    "Artifact",
    "Diagnostic",
    "Digest",
    "Failure",
    "JsonData",
    "Kernel",
    "Launch",
    "LaunchArgument",
    "Manifest",
    "Message",
    "Model",
    "Name",
    "Parent",
    "Pass",
    "Resources",
    "Snapshot",
    "SourceFile",
    "Stage",
    "StageName",
    "StageTime",
    "Symbol",
    "Syntax",
    "Target",
    "Tool",
    "Toolchain",
    "TraceError",
    "artifact_syntax",
    "digest",
    "json_safe",
    "predecessors",
    "previous",
]

SCHEMA = "loupe.trace/2"

# The address of a file of the package is this and its path.
SOURCE_PREFIX = "source:"
MAX_ADDRESS = 600

MAX_STAGES = 32
MAX_DIAGNOSTICS = 10_000
MAX_NESTING = 16
MAX_MEMBERS_DEPTH = 8

Syntax = Literal["python", "mlir", "llvm", "ptx", "sass", "amdgcn", "text"]


class TraceError(ValueError):
    """A trace, or an address in it, that is malformed; the message is fit for a user."""


class Manifest(Model):
    """The complete record of one compilation, without the texts."""

    schema_: Literal["loupe.trace/1", "loupe.trace/2"] = Field(default="loupe.trace/2", alias="schema")
    pipeline: Literal["triton", "linalg-gpu", "linalg-cpu", "mlir"]
    status: Literal["ok", "failed"]
    kernel: Kernel
    launch: Launch | None
    target: Target
    options: dict[str, JsonData]
    toolchain: Toolchain
    parent: Parent | None = None
    stages: Annotated[tuple[Stage, ...], Field(max_length=MAX_STAGES)]
    artifacts: Annotated[tuple[Artifact, ...], Field(max_length=64)]
    launch_metadata: dict[str, JsonData]
    resources: Resources | None
    diagnostics: Annotated[tuple[Diagnostic, ...], Field(max_length=MAX_DIAGNOSTICS)]
    failure: Failure | None

    model_config = ConfigDict(populate_by_name=True)

    @classmethod
    def parse(cls, data: bytes | str) -> Manifest:
        """Read a manifest; raise TraceError with the first fault in words."""
        try:
            manifest = cls.model_validate_json(data)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, fault["loc"]))
            raise TraceError(f"not a trace manifest: {where}: {fault['msg']}") from None
        manifest.check()
        return manifest

    def check(self) -> None:
        """Raise TraceError where the parts contradict each other: names, ordinals, nesting, the outcome."""
        _check_unique("stages", [stage.name for stage in self.stages])
        _check_unique("artifacts", [artifact.name for artifact in self.artifacts])
        _check_unique("source files", [self.kernel.file, *(file.name for file in self.kernel.files)])
        _check_members(self.kernel.arguments)
        for stage in self.stages:
            _check_passes(stage)
        failed = next((f"{s.name}:{p.ordinal}" for s in self.stages for p in s.passes if p.failed), None)
        if self.status == "ok" and (self.failure or failed):
            raise TraceError(f"the trace says ok, but {failed or 'its failure'} says that it failed")
        if self.status == "failed" and not self.failure:
            raise TraceError("the trace says failed, but not why")
        address = self.failure.address if self.failure else None
        if address is not None and address.startswith(SOURCE_PREFIX):
            self._file(address.removeprefix(SOURCE_PREFIX))
        elif address is not None and address != "source" and not self.artifact(address):
            self._locate(address)

    def canonical(self) -> bytes:
        """Return the JSON that ``content`` is the hash of, in the fields of the manifest's own schema."""
        data = self.model_dump(mode="json", by_alias=True)
        if self.schema_ == "loupe.trace/1":
            remove_later_fields(data)
        return canonical_json(data)

    @property
    def content(self) -> str:
        """SHA-256 of the canonical manifest."""
        return digest(self.canonical())

    def stage(self, name: str) -> Stage:
        """Return a stage; raise TraceError where there is none."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise TraceError(f"this trace has no stage {name}; it has {', '.join(s.name for s in self.stages)}")

    def artifact(self, name: str) -> Artifact | None:
        """Return an artifact, or None."""
        return next((a for a in self.artifacts if a.name == name), None)

    def digests(self) -> tuple[str, ...]:
        """Return every text and artifact, each once, in the order in which they arose."""
        seen: dict[str, None] = {self.kernel.source: None, **{file.digest: None for file in self.kernel.files}}
        for stage in self.stages:
            if stage.input:
                seen[stage.input] = None
            for item in stage.passes:
                if item.text:
                    seen[item.text] = None
        for artifact in self.artifacts:
            seen[artifact.digest] = None
        return tuple(seen)

    def resolve(self, address: str) -> Snapshot:
        """Find ``ttgir:12``, ``ttgir:0`` (the stage's input), an artifact's name, ``source`` or ``source:pkg/util.py``.

        Raises:
            TraceError: the address names nothing here, or its pass left no IR.
        """
        if address == "source":
            return Snapshot(address, self.kernel.source, "python", None)
        if address.startswith(SOURCE_PREFIX):
            return Snapshot(address, self._file(address.removeprefix(SOURCE_PREFIX)), "python", None)
        artifact = self.artifact(address)
        if artifact:
            return Snapshot(address, artifact.digest, artifact_syntax(artifact), None)
        stage, item = self._locate(address)
        text = item.text if item else stage.input
        if text is None:
            why = "the compilation ended in it" if item and item.failed else "it was not kept"
            raise TraceError(f"{address} left no IR: {why}")
        return Snapshot(address, text, _syntax(stage, item), item)

    def sources(self) -> Iterator[Snapshot]:
        """Walk the source and the other files of its package."""
        yield self.resolve("source")
        for file in self.kernel.files:
            yield Snapshot(SOURCE_PREFIX + file.name, file.digest, "python", None)

    def _file(self, name: str) -> str:
        if name == self.kernel.file:
            return self.kernel.source
        found = next((file.digest for file in self.kernel.files if file.name == name), None)
        if found is None:
            raise TraceError(f"this trace has no source file {name[:200]!r}; its source is {self.kernel.file}")
        return found

    def _locate(self, address: str) -> tuple[Stage, Pass | None]:
        match = re.fullmatch(r"([a-z][a-z0-9-]*):([0-9]{1,6})", address)
        if not match:
            raise TraceError(f"{address[:100]!r} is not an address such as ttgir:12, ptx or source")
        stage, ordinal = self.stage(match[1]), int(match[2])
        if ordinal > len(stage.passes):
            raise TraceError(f"{stage.name} has {len(stage.passes)} passes, there is no {address}")
        return stage, stage.passes[ordinal - 1] if ordinal else None

    def snapshots(self) -> Iterator[Snapshot]:
        """Walk all inputs and passes that left IR, stage by stage."""
        for stage in self.stages:
            if stage.input:
                yield Snapshot(f"{stage.name}:0", stage.input, _syntax(stage, None), None)
            for item in stage.passes:
                if item.text:
                    yield Snapshot(f"{stage.name}:{item.ordinal}", item.text, _syntax(stage, item), item)


def canonical_json(data: Any) -> bytes:
    """Return the one form of a JSON value: sorted keys, no spaces, ASCII, finite numbers."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


class Snapshot(NamedTuple):
    """A text at an address of a trace; ``item`` is None for inputs, artifacts and the source."""

    address: str
    text: str
    syntax: Syntax
    item: Pass | None


def digest(data: bytes) -> str:
    """Return the name of a text: its SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def artifact_syntax(artifact: Artifact) -> Syntax:
    """Return the language an artifact is written in."""
    table: dict[str, Syntax] = {"llvm-ir": "llvm", "ptx": "ptx", "sass": "sass", "amdgcn": "amdgcn"}
    return table.get(artifact.name, "text")


def _syntax(stage: Stage, item: Pass | None) -> Syntax:
    if isinstance(item, AddedPass):
        return item.syntax
    return "llvm" if isinstance(stage, AddedStage) else "mlir"


def previous(manifest: Manifest, address: str) -> str | None:
    """Return the address that a pass is compared with: the snapshot it received, or None for a stage's input.

    A child is compared with its elder sibling or, being the first, with what the parent received. The next pass
    outside a parent is compared with the parent, never with a child. What is only a part of a module is compared with
    nothing.
    """
    snapshot = manifest.resolve(address)
    if snapshot.item is None:
        return None
    stage = manifest.stage(address.partition(":")[0])
    return _received(stage)[snapshot.item.ordinal - 1]


def predecessors(manifest: Manifest) -> dict[str, str | None]:
    """Return ``previous`` of every pass by its address, in one walk."""
    return {
        f"{stage.name}:{ordinal}": before
        for stage in manifest.stages
        for ordinal, before in enumerate(_received(stage), 1)
    }


def _received(stage: Stage) -> list[str | None]:
    received: list[str | None] = []
    newest: dict[int | None, str] = {}
    first = f"{stage.name}:0" if stage.input else None
    for item in stage.passes:
        if isinstance(item, AddedPass) and item.fragment:
            received.append(None)
            continue
        inherited = first if item.parent is None else received[item.parent - 1]
        received.append(newest.get(item.parent, inherited))
        if item.text:
            newest[item.parent] = f"{stage.name}:{item.ordinal}"
    return received


def _check_unique(what: str, names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise TraceError(f"two {what} have one name")


def _check_passes(stage: Stage) -> None:
    """Raise TraceError unless passes are numbered in turn and each ran inside one that had not ended."""
    running: list[int] = []
    for index, item in enumerate(stage.passes, 1):
        if item.ordinal != index:
            raise TraceError(f"{stage.name}: pass {index} is numbered {item.ordinal}")
        while running and running[-1] != item.parent:
            running.pop()
        if item.parent is not None and not running:
            raise TraceError(f"{stage.name}:{index} has no parent {item.parent}")
        running.append(index)
        if len(running) > MAX_NESTING:
            raise TraceError(f"{stage.name}:{index} is nested deeper than {MAX_NESTING} passes")


def _check_members(arguments: Iterable[Argument]) -> None:
    level = list(arguments)
    for _ in range(MAX_MEMBERS_DEPTH):
        level = [member for argument in level for member in argument.members]
    if level:
        raise TraceError(f"an argument's tuples are nested deeper than {MAX_MEMBERS_DEPTH} levels")
