"""The data model of a trace: what every room shares.

A manifest names its texts by SHA-256, so it is small, and a text that several passes share is stored once.
The file that carries a manifest with its texts is in ``pipelines.tracefile``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

SCHEMA = "loupe.trace/1"

MAX_STAGES = 32
MAX_PASSES = 20_000
MAX_DIAGNOSTICS = 10_000

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(max_length=512)]
Message = Annotated[str, Field(max_length=200_000)]
StageName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")]

Syntax = Literal["python", "mlir", "llvm", "ptx", "sass", "text"]


class TraceError(ValueError):
    """A trace, or an address in it, that is malformed; the message is fit for a user."""


class Model(BaseModel):
    """A frozen record that refuses unknown fields, since manifests arrive from hostile places."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Argument(Model):
    """One kernel parameter as compiled: ``type`` is Triton's (``*fp16``, ``i32``, ``constexpr``)."""

    name: Name
    type: Name
    divisibility: int | None = None
    value: JsonValue = None


class Kernel(Model):
    """The source and what it was specialized to; ``arguments`` are in declaration order."""

    name: Name
    file: Name
    source: Digest
    arguments: tuple[Argument, ...]
    origin: Literal["given", "captured", "none"]


class LaunchArgument(Model):
    """A value the launch code passed; ``shape`` and ``strides`` count elements."""

    name: Name
    dtype: Name
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    value: JsonValue = None


class Launch(Model):
    """How the source's own code launched the kernel."""

    grid: tuple[int, ...] | None
    arguments: tuple[LaunchArgument, ...]
    config: Name | None = None


class Target(Model):
    """A chip, ``sm_90``."""

    arch: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$")]
    backend: Literal["cuda", "hip", "cpu"]
    warp_size: int


class Tool(Model):
    """One file of the toolchain, named by its role."""

    name: Name
    version: Name
    sha256: Digest


class Toolchain(Model):
    """The exact files that made a trace, and the commands that they were run with."""

    name: Name
    tools: tuple[Tool, ...]
    commands: tuple[Name, ...] = ()


class Pass(Model):
    """One pass and the snapshot it left.

    ``ordinal`` counts from 1 in the order passes began; ``parent`` is the ordinal of the pass that ran this one
    inside itself. ``step`` names an internal step of the parent (``ExpandLoops``) that is no pass of its own.
    ``text`` is None only for the pass that failed without leaving IR.
    """

    ordinal: Annotated[int, Field(ge=1)]
    parent: int | None = None
    name: Name
    argument: Message
    anchor: Name
    function: Name | None = None
    step: Name | None = None
    text: Digest | None
    failed: bool = False


class Stage(Model):
    """A run of passes at one level; ``input`` is the IR that its first pass received."""

    name: StageName
    input: Digest | None
    passes: Annotated[tuple[Pass, ...], Field(max_length=MAX_PASSES)]


class Artifact(Model):
    """A product that no pass printed: LLVM IR, PTX, the cubin, SASS, logs."""

    name: StageName
    digest: Digest
    binary: bool = False


class Diagnostic(Model):
    """A message of the compiler, tied to the kernel's line where one is known; ``line`` counts from 1."""

    severity: Literal["error", "warning", "remark", "note"]
    message: Message
    file: Name | None = None
    line: int | None = None
    column: int | None = None
    address: Name | None = None


class Resources(Model):
    """What one program costs on the chip: registers a thread, bytes, instructions in SASS."""

    registers: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    stack: int | None = None
    shared: int | None = None
    constant: int | None = None
    barriers: int | None = None
    instructions: int | None = None


class Failure(Model):
    """Why a trace ends early. ``stage`` and ``address`` say how far it came."""

    kind: Literal["error", "abort", "timeout", "memory", "disk", "processes", "invalid"]
    stage: StageName | None
    address: Name | None
    message: Message
    hint: Message | None = None


class Parent(Model):
    """The trace that this one was edited from."""

    content: Digest
    address: Name
    edit: Digest


class Manifest(Model):
    """The complete record of one compilation, without the texts."""

    schema_: Literal["loupe.trace/1"] = Field(default="loupe.trace/1", alias="schema")
    pipeline: Literal["triton", "linalg-gpu", "linalg-cpu", "mlir"]
    status: Literal["ok", "failed"]
    kernel: Kernel
    launch: Launch | None
    target: Target
    options: dict[str, JsonValue]
    toolchain: Toolchain
    parent: Parent | None = None
    stages: Annotated[tuple[Stage, ...], Field(max_length=MAX_STAGES)]
    artifacts: Annotated[tuple[Artifact, ...], Field(max_length=64)]
    launch_metadata: dict[str, JsonValue]
    resources: Resources | None
    diagnostics: Annotated[tuple[Diagnostic, ...], Field(max_length=MAX_DIAGNOSTICS)]
    failure: Failure | None

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

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
        """Raise TraceError where stages or passes contradict each other."""
        names = [stage.name for stage in self.stages]
        if len(set(names)) != len(names):
            raise TraceError("two stages have one name")
        for stage in self.stages:
            for index, item in enumerate(stage.passes, 1):
                if item.ordinal != index:
                    raise TraceError(f"{stage.name}: pass {index} is numbered {item.ordinal}")
                if item.parent is not None and not 1 <= item.parent < index:
                    raise TraceError(f"{stage.name}:{index} has no parent {item.parent}")

    def canonical(self) -> bytes:
        """Return the JSON that ``content`` is the hash of: sorted keys, no spaces, ASCII."""
        data = self.model_dump(mode="json", by_alias=True)
        return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")

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
        seen: dict[str, None] = {self.kernel.source: None}
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
        """Find ``ttgir:12``, ``ttgir:0`` (the stage's input), an artifact's name or ``source``.

        Raises:
            TraceError: the address names nothing here, or its pass left no IR.
        """
        if address == "source":
            return Snapshot(address, self.kernel.source, "python", None)
        artifact = self.artifact(address)
        if artifact:
            return Snapshot(address, artifact.digest, artifact_syntax(artifact), None)
        match = re.fullmatch(r"([a-z][a-z0-9-]*):(\d{1,6})", address)
        if not match:
            raise TraceError(f"{address!r} is not an address such as ttgir:12, ptx or source")
        stage, ordinal = self.stage(match[1]), int(match[2])
        if ordinal > len(stage.passes):
            raise TraceError(f"{stage.name} has {len(stage.passes)} passes, there is no {address}")
        item = stage.passes[ordinal - 1] if ordinal else None
        text = item.text if item else stage.input
        if text is None:
            raise TraceError(f"{address} left no IR: the compilation ended in it")
        return Snapshot(address, text, "mlir", item)

    def snapshots(self) -> Iterator[Snapshot]:
        """Walk all inputs and passes that left IR, stage by stage."""
        for stage in self.stages:
            if stage.input:
                yield Snapshot(f"{stage.name}:0", stage.input, "mlir", None)
            for item in stage.passes:
                if item.text:
                    yield Snapshot(f"{stage.name}:{item.ordinal}", item.text, "mlir", item)


class Snapshot(NamedTuple):
    """A text at an address of a trace; ``item`` is None for inputs, artifacts and the source."""

    address: str
    text: str
    syntax: Syntax
    item: Pass | None


class StageTime(Model):
    """Seconds of wall time that a stage took."""

    stage: Name
    seconds: float


class Addendum(Model):
    """What varies from run to run or comes later; stored beside a trace, keyed (content, kind, revision)."""

    kind: Literal["times"]
    revision: int
    times: tuple[StageTime, ...]


def digest(data: bytes) -> str:
    """Return the name of a text: its SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def artifact_syntax(artifact: Artifact) -> Syntax:
    """Return the language an artifact is written in."""
    table: dict[str, Syntax] = {"llvm-ir": "llvm", "ptx": "ptx", "sass": "sass"}
    return table.get(artifact.name, "text")


def previous(manifest: Manifest, address: str) -> str | None:
    """Return the address that a pass is compared with: the snapshot it received, or None for a stage's input.

    A child is compared with its elder sibling or, being the first, with what the parent received. The next pass
    outside a parent is compared with the parent, never with a child.
    """
    snapshot = manifest.resolve(address)
    if snapshot.item is None:
        return None
    stage = manifest.stage(address.partition(":")[0])
    item = snapshot.item
    for other in reversed(stage.passes[: item.ordinal - 1]):
        if other.parent == item.parent and other.text:
            return f"{stage.name}:{other.ordinal}"
        if other.ordinal == item.parent:
            return previous(manifest, f"{stage.name}:{other.ordinal}")
    return f"{stage.name}:0" if stage.input else None


def json_safe(value: Any) -> JsonValue:
    """Turn an option's or constexpr's value into JSON: tuples become lists, what JSON lacks becomes its repr."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else repr(value)
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, dict):
        return {str(key): json_safe(item) for key, item in value.items()}
    return repr(value)
