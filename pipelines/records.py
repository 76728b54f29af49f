"""The records that a manifest is made of; ``pipelines.trace`` is where the other rooms get them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipelines.json_values import JsonData

MAX_PASSES = 20_000
MAX_ARGUMENTS = 1_000
MAX_HEADER = 16_384
MAX_FILES = 256

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(max_length=512)]
Symbol = Annotated[str, Field(max_length=MAX_HEADER)]
Message = Annotated[str, Field(max_length=200_000)]
StageName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")]


class Model(BaseModel):
    """A frozen record that refuses unknown fields, since manifests arrive from hostile places."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Argument(Model):
    """One kernel parameter as compiled: ``type`` is Triton's (``*fp16``, ``i32``, ``constexpr``).

    A tuple has its elements as ``members``, each with its own type, divisibility and value. ``guessed`` says that
    nobody gave the type or value: it was guessed from how the kernel uses the argument. ``pointer_range`` is how many
    bits hold any offset from a pointer, which AMD's back end is told of tensors of at most 2 GB.
    """

    name: Name
    type: Message
    divisibility: int | None = None
    value: JsonData = None
    members: Annotated[tuple[Argument, ...], Field(max_length=MAX_ARGUMENTS)] = ()
    guessed: bool = False
    pointer_range: int | None = None


class SourceFile(Model):
    """Another file of the kernel's package, by its path in it."""

    name: Name
    digest: Digest


class Kernel(Model):
    """The source and what it was specialized to; ``arguments`` are in declaration order.

    ``file`` is the source's path in its package, ``files`` are the package's others; ``module`` is the name of an
    installed library's module where the source is its file.
    """

    name: Name
    file: Name
    source: Digest
    arguments: Annotated[tuple[Argument, ...], Field(max_length=MAX_ARGUMENTS)]
    origin: Literal["given", "captured", "guessed", "none"]
    files: Annotated[tuple[SourceFile, ...], Field(max_length=MAX_FILES)] = ()
    module: Name | None = None


class LaunchArgument(Model):
    """A value the launch code passed; ``shape`` and ``strides`` count elements."""

    name: Name
    dtype: Message
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    value: JsonData = None


class Launch(Model):
    """How the source's own code launched the kernel."""

    grid: tuple[int, ...] | None
    arguments: Annotated[tuple[LaunchArgument, ...], Field(max_length=MAX_ARGUMENTS)]
    config: Message | None = None


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
    commands: tuple[Message, ...] = ()


class Pass(Model):
    """One pass and the snapshot it left.

    ``ordinal`` counts from 1 in the order passes began; ``parent`` is the ordinal of the pass that ran this one
    inside itself. ``step`` names an internal step of the parent (``ExpandLoops``) that is no pass of its own.
    ``text`` is None for the pass that failed without leaving IR, and for one whose IR was too large to be kept. Names
    are as long as a dump's header can be, since a mangled function carries the types of all its arguments.
    """

    ordinal: Annotated[int, Field(ge=1)]
    parent: int | None = None
    name: Symbol
    argument: Symbol
    anchor: Symbol
    function: Symbol | None = None
    step: Symbol | None = None
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
    """What one program costs on the chip: registers a thread, bytes, instructions in SASS or AMDGCN.

    On AMD ``registers`` are all vector registers, of which ``agprs`` accumulate; ``sgprs`` are scalar, ``stack`` is
    scratch, ``shared`` is LDS, spills are registers, and ``occupancy`` counts waves a SIMD.
    """

    registers: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    stack: int | None = None
    shared: int | None = None
    constant: int | None = None
    barriers: int | None = None
    instructions: int | None = None
    sgprs: int | None = None
    agprs: int | None = None
    sgpr_spills: int | None = None
    vgpr_spills: int | None = None
    occupancy: int | None = None


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


_LATER_RESOURCES = ("sgprs", "agprs", "sgpr_spills", "vgpr_spills", "occupancy")


def remove_later_fields(manifest: dict[str, Any]) -> None:
    """Take out of a dumped manifest of the first schema what came with the second; it holds only defaults."""
    kernel = manifest["kernel"]
    del kernel["files"], kernel["module"]
    waiting = list(kernel["arguments"])
    while waiting:
        argument = waiting.pop()
        del argument["guessed"], argument["pointer_range"]
        waiting += argument["members"]
    for name in _LATER_RESOURCES if manifest["resources"] else ():
        del manifest["resources"][name]
