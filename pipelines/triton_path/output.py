"""The files a compilation left in its slot, read as the hostile input they are: bounded, validated, never unpickled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from pipelines.trace import LaunchArgument, Message, Name, StageName, StageTime
from pipelines.triton_path.spec import LaunchFound

MAX_JSON = 4 << 20
MAX_DUMP = 512 << 20
MAX_ARTIFACT = 64 << 20
MAX_STDERR = 4 << 20

ARTIFACTS = ("llvm-ir", "ptx", "cubin", "ptxas-log")
STAGE_OUTPUTS = ("ttir", "ttgir", "llvm-dialect")

Read = Callable[[str, int], bytes | None]


class ForgedOutputError(ValueError):
    """The child's files are not what this project's own code writes; the message says where."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ArgumentMade(_Strict):
    """An argument as the compilation used it."""

    name: Name
    type: Name
    divisibility: int | None
    value: JsonValue


class LaunchShown(_Strict):
    """What the launch code passed."""

    grid: tuple[int, ...] | None
    config: Name | None
    arguments: Annotated[tuple[LaunchArgument, ...], Field(max_length=1000)]


class LaunchMade(_Strict):
    """``launch.json``: the kernel, its signature and options, before the compilation began."""

    name: Name
    origin: Literal["given", "captured"]
    arguments: Annotated[tuple[ArgumentMade, ...], Field(max_length=1000)]
    options: dict[str, JsonValue]
    launch: LaunchShown | None


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
    event: Literal["pipeline", "stage-begin", "stage-end", "command"]
    at: float
    name: Name | None = None
    stage: StageName | None = None
    passes: Annotated[str | None, Field(max_length=1 << 20)] = None
    command: Annotated[tuple[Name, ...], Field(max_length=64)] | None = None


@dataclass
class Output:
    """Everything read back. ``runs`` are the pass managers' names and pipelines, ``stages`` what completed."""

    launch: LaunchMade | None = None
    launches: tuple[LaunchFound, ...] = ()
    error: ErrorMade | None = None
    metadata: dict[str, JsonValue] = field(default_factory=dict)
    runs: list[tuple[str, str]] = field(default_factory=list)
    times: list[StageTime] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    begun: str | None = None
    complete: set[str] = field(default_factory=set)
    stages: dict[str, bytes] = field(default_factory=dict)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    dump: bytes = b""
    stderr: str = ""


def read_output(read: Read) -> Output:
    """Read what is there.

    Raises:
        ForgedOutputError: a file is not what ``child`` writes, or is larger than it can be.
    """
    output = Output()
    output.launch = _json(read, "launch.json", LaunchMade)
    output.launches = _json(read, "launches.json", tuple[LaunchFound, ...]) or ()
    output.error = _json(read, "error.json", ErrorMade)
    output.metadata = _json(read, "metadata.json", dict[str, JsonValue]) or {}
    _read_events(read("events.jsonl", MAX_JSON) or b"", output)
    for name in STAGE_OUTPUTS:
        text = read(f"{name}.out", MAX_ARTIFACT)
        if text is not None:
            output.stages[name] = text.rstrip(b"\n")
    for name in ARTIFACTS:
        data = read(f"{name}.out", MAX_ARTIFACT)
        if data:
            output.artifacts[name] = data if name == "cubin" else data.rstrip(b"\n")
    output.dump = read("dump.mlir", MAX_DUMP) or b""
    output.stderr = (read("stderr", MAX_STDERR) or b"").decode("utf-8", errors="replace")
    return output


_Kind = TypeVar("_Kind")


def _json(read: Read, name: str, kind: type[_Kind]) -> _Kind | None:
    data = read(name, MAX_JSON)
    if data is None:
        return None
    validated: _Kind = _validate(name, kind, data)
    return validated


def _validate(name: str, kind: Any, data: bytes) -> Any:
    try:
        return TypeAdapter(kind).validate_json(data)
    except (ValidationError, RecursionError) as error:
        raise ForgedOutputError(f"{name} is not what a compilation writes: {str(error)[:300]}") from None


def _read_events(data: bytes, output: Output) -> None:
    begun: dict[str, float] = {}
    for line in data.split(b"\n")[:10_000]:
        if not line:
            continue
        event: _EventLine = _validate("events.jsonl", _EventLine, line)
        if event.event == "pipeline" and event.name and event.passes is not None:
            output.runs.append((event.name, event.passes))
        elif event.event == "stage-begin" and event.stage:
            begun[event.stage] = event.at
            output.begun = event.stage
        elif event.event == "stage-end" and event.stage:
            output.complete.add(event.stage)
            seconds = max(0.0, event.at - begun.get(event.stage, event.at))
            output.times.append(StageTime(stage=event.stage, seconds=round(seconds, 6)))
        elif event.event == "command" and event.command:
            output.commands.append(" ".join(event.command))
