"""The files a compilation left in its slot, read as the hostile input they are: bounded, validated, never unpickled."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pipelines.dumps.mlir import Record
from pipelines.json_values import JsonData
from pipelines.sandbox import Limits, Outcome, Slot
from pipelines.trace import LaunchArgument, Message, Name, StageName, StageTime
from pipelines.triton_path.spec import LaunchFound
from pipelines.triton_path.targets import BINARIES

MAX_JSON = 4 << 20
MAX_DUMP = 512 << 20
MAX_ARTIFACT = 64 << 20
MAX_STDERR = 4 << 20

ARTIFACTS = ("llvm-ir", "ptx", "amdgcn", "cubin", "hsaco", "ptxas-log")
STAGE_OUTPUTS = ("ttir", "ttgir", "llvm-dialect")


class ForgedOutputError(ValueError):
    """The child's files are not what this project's own code writes; the message says which."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ArgumentMade(_Strict):
    """An argument as the compilation used it; a tuple has its elements as ``members``."""

    name: Name
    type: Message
    divisibility: int | None
    value: JsonData
    members: Annotated[tuple[ArgumentMade, ...], Field(max_length=1000)] = ()
    guessed: bool = False
    pointer_range: int | None = None


class NoteMade(_Strict):
    """Something to know of the launch code, or that went wrong without ending it; line from 1, column from 0."""

    message: Message
    severity: Literal["warning", "note"] = "warning"
    file: Name | None = None
    line: int | None = None
    column: int | None = None


class LaunchShown(_Strict):
    """What the launch code passed."""

    grid: tuple[int, ...] | None
    config: Message | None
    arguments: Annotated[tuple[LaunchArgument, ...], Field(max_length=1000)]


class LaunchMade(_Strict):
    """``launch.json``: the kernel, its signature and options, before the compilation began.

    ``complete`` is False where the launch code was stopped for its time: there may be other launches next time.
    """

    name: Name
    origin: Literal["given", "captured", "guessed"]
    arguments: Annotated[tuple[ArgumentMade, ...], Field(max_length=1000)]
    options: dict[str, JsonData]
    launch: LaunchShown | None
    notes: Annotated[tuple[NoteMade, ...], Field(max_length=1000)] = ()
    complete: bool = True


class ErrorPlace(_Strict):
    """A place in Python that led to the error; line from 1, column from 0."""

    file: Name | None
    line: int | None
    column: int | None
    message: Message


class ErrorMade(_Strict):
    """``error.json``: the exception that ended the compilation."""

    type: Name
    message: Message
    places: Annotated[tuple[ErrorPlace, ...], Field(max_length=64)]
    stage: StageName | None
    user: bool


class _EventLine(_Strict):
    event: Literal["pipeline", "pipeline-end", "stage-begin", "stage-end", "command"]
    at: float
    name: Name | None = None
    stage: StageName | None = None
    passes: Annotated[str | None, Field(max_length=1 << 20)] = None
    command: Annotated[tuple[Message, ...], Field(max_length=64)] | None = None


@dataclass
class Output:
    """Everything read back.

    ``runs`` are the pass managers' names and pipelines, the first ``ended`` of them to their end; ``stages`` hold what
    completed ones gave; ``oversize`` names texts that were too large to keep.
    """

    launch: LaunchMade | None = None
    launches: tuple[LaunchFound, ...] = ()
    error: ErrorMade | None = None
    metadata: dict[str, JsonData] = field(default_factory=dict)
    runs: list[tuple[str, str]] = field(default_factory=list)
    ended: int = 0
    times: list[StageTime] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    begun: str | None = None
    complete: set[str] = field(default_factory=set)
    stages: dict[str, bytes] = field(default_factory=dict)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    dump: bytes = b""
    stderr: str = ""
    oversize: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """What one child left, how it ended (None while it runs), under which limits.

    ``forged`` says what is wrong with its files.
    """

    output: Output
    outcome: Outcome | None
    limits: Limits
    records: tuple[Record, ...] = ()
    forged: str | None = None


def read_output(slot: Slot) -> Output:
    """Read what is there; the child may still run.

    Raises:
        ForgedOutputError: a file is not what ``child`` writes, or is larger than it can be.
    """
    output = Output()
    output.launch = read_json(slot, "launch.json", LaunchMade)
    output.launches = read_json(slot, "launches.json", tuple[LaunchFound, ...]) or ()
    output.error = read_json(slot, "error.json", ErrorMade)
    output.metadata = read_json(slot, "metadata.json", dict[str, JsonData]) or {}
    _read_events(_whole(slot, "events.jsonl"), output)
    for name in STAGE_OUTPUTS:
        text = _text(slot, name, output)
        if text is not None:
            output.stages[name] = text.rstrip(b"\n")
    for name in ARTIFACTS:
        data = _text(slot, name, output)
        if data:
            output.artifacts[name] = data if name in BINARIES else data.rstrip(b"\n")
    output.dump = slot.read("dump.mlir", MAX_DUMP, cut=True) or b""
    output.stderr = read_ends(slot, "stderr", MAX_STDERR).decode("utf-8", errors="replace")
    return output


def read_ends(slot: Slot, name: str, limit: int) -> bytes:
    """Read a file's head and tail, ``limit`` bytes together: what a process says last is why it ended."""
    descriptor = slot.open(name)
    if descriptor is None:
        return b""
    try:
        size = os.fstat(descriptor).st_size
        if size <= limit:
            return os.pread(descriptor, limit, 0)
        head, tail = os.pread(descriptor, limit // 2, 0), os.pread(descriptor, limit // 2, size - limit // 2)
    finally:
        os.close(descriptor)
    return head + b"\n...\n" + tail


def _text(slot: Slot, name: str, output: Output) -> bytes | None:
    data = slot.read(f"{name}.out", MAX_ARTIFACT + 1, cut=True)
    if data is not None and len(data) > MAX_ARTIFACT:
        output.oversize.append(name)
        return None
    return data


def _whole(slot: Slot, name: str) -> bytes:
    data = slot.read(name, MAX_JSON + 1, cut=True) or b""
    if len(data) > MAX_JSON:
        raise ForgedOutputError(f"{name} is larger than a compilation makes it")
    return data


_Kind = TypeVar("_Kind")


def read_json(slot: Slot, name: str, kind: type[_Kind]) -> _Kind | None:
    """Read a file as one kind of record; None where there is none. Raises ForgedOutputError as ``read_output``."""
    data = _whole(slot, name)
    if not data:
        return None
    validated: _Kind = _validate(name, kind, data)
    return validated


def _validate(name: str, kind: Any, data: bytes) -> Any:
    try:
        return TypeAdapter(kind).validate_json(data)
    except (ValidationError, RecursionError):
        raise ForgedOutputError(f"{name} is not what a compilation writes") from None


def _read_events(data: bytes, output: Output) -> None:
    begun: dict[str, float] = {}
    for line in data.split(b"\n")[:-1][:10_000]:  # what no newline ends was cut off, or is being written
        event: _EventLine = _validate("events.jsonl", _EventLine, line)
        if event.event == "pipeline" and event.name and event.passes is not None:
            output.runs.append((event.name, event.passes))
        elif event.event == "pipeline-end":
            output.ended = len(output.runs)
        elif event.event == "stage-begin" and event.stage:
            begun[event.stage] = event.at
            output.begun = event.stage
        elif event.event == "stage-end" and event.stage:
            output.complete.add(event.stage)
            seconds = max(0.0, event.at - begun.get(event.stage, event.at))
            output.times.append(StageTime(stage=event.stage, seconds=round(seconds, 6)))
        elif event.event == "command" and event.command:
            output.commands.append(" ".join(event.command))
