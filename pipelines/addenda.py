"""What varies from run to run or comes later: stored beside a trace, keyed (content, kind, revision), never changed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from pipelines.records import MAX_PASSES, Digest, Message, Model, Name, Pass, Stage, StageName


class StageTime(Model):
    """Seconds of wall time that a stage took."""

    stage: Name
    seconds: float


class Times(Model):
    """How long the stages took in the run that made the trace."""

    kind: Literal["times"] = "times"
    revision: int
    times: tuple[StageTime, ...]


class LlvmPasses(Model):
    """LLVM's own passes, whose record and texts are in a file of their own, named by its hash."""

    kind: Literal["llvm-passes"] = "llvm-passes"
    revision: int
    file: Digest


class PassTime(Model):
    """Seconds of wall time that a pass took, over several runs."""

    address: Name
    median: float
    least: float
    most: float


class PassTimes(Model):
    """How long MLIR's passes took in ``runs`` compilations without dumps.

    ``passes`` are those of the trace; a pass that ran on several functions has its time at the first of them, and one
    that ran others inside itself includes theirs. ``stages`` are medians. ``unmapped`` names what was timed and is no
    pass of the trace.
    """

    kind: Literal["pass-times"] = "pass-times"
    revision: int
    runs: int
    passes: Annotated[tuple[PassTime, ...], Field(max_length=MAX_PASSES)]
    stages: tuple[StageTime, ...]
    unmapped: Annotated[tuple[Name, ...], Field(max_length=MAX_PASSES)] = ()


Addendum = Annotated[Times | LlvmPasses | PassTimes, Field(discriminator="kind")]

ADDENDUM: TypeAdapter[Addendum] = TypeAdapter(Addendum)


class AddedPass(Pass):
    """A pass of LLVM: ``anchor`` is what it ran on.

    A ``fragment`` is a text that holds a part of the module only, which can be compared with nothing. Machine code has
    the syntax ``text``.
    """

    syntax: Literal["llvm", "text"] = "llvm"
    fragment: bool = False


class AddedStage(Stage):
    """A run of LLVM's passes: ``llvm-ir`` up to the trace's own LLVM IR, ``llvm-codegen`` from there."""

    passes: Annotated[tuple[AddedPass, ...], Field(max_length=MAX_PASSES)]


class AddedPasses(Model):
    """The head of a file of LLVM's passes: whose they are, and the passes; ``note`` tells what is missing and why."""

    schema_: Literal["loupe.passes/1"] = Field(default="loupe.passes/1", alias="schema")
    kind: Literal["llvm-passes"] = "llvm-passes"
    content: Digest
    stages: Annotated[tuple[AddedStage, ...], Field(min_length=1, max_length=4)]
    note: Message | None = None

    model_config = ConfigDict(populate_by_name=True)

    def digests(self) -> tuple[str, ...]:
        """Return every text, each once, in the order in which they arose."""
        seen: dict[str, None] = {}
        for stage in self.stages:
            texts = (stage.input, *(item.text for item in stage.passes))
            seen.update(dict.fromkeys(text for text in texts if text))
        return tuple(seen)

    def passes(self) -> int:
        """Return how many passes there are."""
        return sum(len(stage.passes) for stage in self.stages)


STAGE_NAMES: tuple[StageName, ...] = ("llvm-ir", "llvm-codegen")
