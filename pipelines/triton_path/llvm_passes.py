"""LLVM's own passes of a trace: its input is compiled once more while LLVM prints, and the result must be the trace's.

The optimizer's passes are the stage ``llvm-ir``, which ends with the trace's LLVM IR; those of code generation are
``llvm-codegen``, which ends with PTX or AMDGCN.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pipelines.addedfile import canonical
from pipelines.addenda import AddedPass, AddedPasses, AddedStage
from pipelines.dumps.llvm import Record, RecordReader
from pipelines.sandbox import Limits, Outcome, Slot
from pipelines.trace import MAX_PASSES, TraceError, digest
from pipelines.tracefile import Frames, TraceFile
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.follow import Tail
from pipelines.triton_path.output import ForgedOutputError, Output, read_output
from pipelines.triton_path.spec import CompileSpec, Event

# All that LLVM may print: attention, the gallery's largest, prints 560 MB.
MAX_RAW = 1 << 30
SECONDS = 120.0

OPTIMIZER, CODEGEN = "llvm-ir", "llvm-codegen"
_DUMPS = {OPTIMIZER: "llvm-ir.dump", CODEGEN: "llvm-codegen.dump"}
_INPUT = "llvm-input.out"
_ASSEMBLIES = ("ptx", "amdgcn")
_WHOLE = ("module", "machine-function")


class NotAttachedError(RuntimeError):
    """What was printed does not belong to the trace, or could not be compared with it; the message says why."""


class _TooMuchError(Exception):
    """LLVM printed more than is kept."""


@dataclass(frozen=True)
class Printed:
    """LLVM's passes and the file that holds them with their texts."""

    added: AddedPasses
    file: bytes


def print_passes(
    compiler: Compiler, spec: CompileSpec, trace: TraceFile, on_event: Callable[[Event], None], max_raw: int = MAX_RAW
) -> Printed:
    """Compile a trace's input again and return what LLVM printed.

    Where LLVM prints more than ``max_raw`` bytes or takes too long, the passes up to there are kept if the trace's LLVM
    IR was reached, since only then is it known that they are the trace's; a note says where they end.

    Raises:
        NotAttachedError: the trace has no LLVM IR, or the second compilation did not give the same.
    """
    if trace.manifest.artifact(OPTIMIZER) is None:
        raise NotAttachedError("The trace has no LLVM IR: its compilation ended before LLVM's passes had run.")
    limits = compiler.limits
    limits = dataclasses.replace(
        limits,
        wall_s=SECONDS,
        cpu_s=int(SECONDS),
        file=max(limits.file, max_raw + (64 << 20)),
        disk=max(limits.disk, 2 * max_raw),
    )
    gatherer = _Gatherer(trace, on_event, max_raw)
    try:
        with compiler.compile_again(spec, {"print_llvm": True}, limits, gatherer.poll) as finished:
            gatherer.poll_to_end(finished.slot, whole=finished.outcome.ok)
            output, note = _read(finished.slot), _ended_early(finished.outcome, limits)
    except _TooMuchError:
        note = f"LLVM printed more than {max_raw >> 20} MB"
        output = gatherer.output
    _check(trace, output, note)
    return gatherer.finish(note)


def _read(slot: Slot) -> Output:
    try:
        return read_output(slot)
    except ForgedOutputError as error:
        raise NotAttachedError(f"The second compilation's files cannot be read: {error}.") from None


def _ended_early(outcome: Outcome, limits: Limits) -> str | None:
    if outcome.ok:
        return None
    how = f"took longer than {limits.wall_s:.0f} s" if outcome.kind == "timeout" else f"ended early ({outcome.kind})"
    return f"The second compilation {how}"


def _check(trace: TraceFile, output: Output, note: str | None) -> None:
    """Raise NotAttachedError unless the trace's LLVM IR, and its assembly where it was reached, came out again."""
    manifest = trace.manifest
    for name in (OPTIMIZER, *_ASSEMBLIES):
        artifact, again = manifest.artifact(name), output.artifacts.get(name)
        if artifact is None or (again is None and note and name != OPTIMIZER):
            continue
        if again is None:
            said = note or (output.error.message if output.error else "it said nothing")
            raise NotAttachedError(
                f"The second compilation did not come to {name}, so that nothing shows that LLVM's passes are those of "
                f"this trace: {said}"
            )
        if digest(again) != artifact.digest:
            raise NotAttachedError(
                f"The second compilation gave another {name} than the trace has, so its passes are not shown. The "
                "source compiles differently from run to run, or this server's toolchain is not the one that made the "
                "trace."
            )


@dataclass
class _Stage:
    """A dump that is being read: where, and the passes found."""

    tail: Tail
    reader: RecordReader = field(default_factory=RecordReader)
    input: str | None = None
    passes: list[AddedPass] = field(default_factory=list)


class _Gatherer:
    """Follows both dumps, and compresses each snapshot as it comes."""

    def __init__(self, trace: TraceFile, on_event: Callable[[Event], None], max_raw: int) -> None:
        self._trace = trace
        self._on_event = on_event
        self._left = max_raw
        self._frames = Frames()
        self._stages = {name: _Stage(Tail(dump, max_raw + 1)) for name, dump in _DUMPS.items()}
        self.output = Output()

    def poll(self, slot: Slot) -> None:
        """Take what is new; raise _TooMuchError beyond the bound, with ``output`` read."""
        for name, stage in self._stages.items():
            data = stage.tail.read(slot)
            self._left -= len(data)
            if name == CODEGEN and data:
                self._take(slot, OPTIMIZER, self._rest_of_optimizer(slot))
            self._take(slot, name, stage.reader.feed(data))
            if self._left < 0:
                self.output = _read(slot)
                raise _TooMuchError

    def _rest_of_optimizer(self, slot: Slot) -> Iterator[Record]:
        """Read the optimizer's dump to its end, which has come when code generation prints."""
        stage = self._stages[OPTIMIZER]
        while data := stage.tail.read(slot):
            self._left -= len(data)
            yield from stage.reader.feed(data)
        yield from stage.reader.finish()

    def poll_to_end(self, slot: Slot, *, whole: bool) -> None:
        """Take what is left once the run has ended; the last snapshot only where it is ``whole``."""
        before = -1
        while self._left != before:
            before = self._left
            self.poll(slot)
        if whole:
            for name, stage in self._stages.items():
                self._take(slot, name, stage.reader.finish())

    def _take(self, slot: Slot, name: str, records: Iterator[Record] | list[Record]) -> None:
        stage = self._stages[name]
        for record in records:
            if stage.input is None:
                stage.input = self._keep(self._input(slot, name))
            if record.header.when == "before":
                continue
            if len(stage.passes) == MAX_PASSES:
                raise NotAttachedError(f"LLVM printed more than {MAX_PASSES} passes.")
            item = _pass(len(stage.passes) + 1, record, self._keep(record.text) if record.text else None)
            stage.passes.append(item)
            self._on_event(Event("pass", {"stage": name, "ordinal": item.ordinal, "name": item.name, "parent": None}))

    def _input(self, slot: Slot, name: str) -> bytes:
        """Return what the stage's first pass received."""
        if name == OPTIMIZER:
            return (slot.read(_INPUT, MAX_RAW) or b"").strip(b"\n")
        artifact = self._trace.manifest.artifact(OPTIMIZER)
        return self._trace.blob(artifact.digest) if artifact else b""

    def _keep(self, text: bytes) -> str:
        name = digest(text)
        try:
            self._frames.add(name, text)
        except TraceError as error:
            raise NotAttachedError(f"LLVM's passes cannot be kept: {error}.") from None
        return name

    def finish(self, note: str | None) -> Printed:
        """Return the passes as a file."""
        stages = tuple(
            AddedStage(name=name, input=stage.input, passes=tuple(stage.passes))
            for name, stage in self._stages.items()
            if stage.passes
        )
        if not stages:
            raise NotAttachedError("LLVM printed no pass.")
        last = f"{stages[-1].name}:{len(stages[-1].passes)}"
        said = f"{note}: what came after {last} is not kept." if note else None
        added = AddedPasses(content=self._trace.content, stages=stages, note=said)
        return Printed(added, self._frames.finish(canonical(added)))


def _pass(ordinal: int, record: Record, text: str | None) -> AddedPass:
    header, holds = record.header, record.holds
    return AddedPass(
        ordinal=ordinal,
        name=header.name,
        argument=header.argument,
        anchor=header.ran_on or holds,
        function=header.function,
        text=text,
        syntax="text" if holds == "machine-function" else "llvm",
        fragment=text is not None and holds not in _WHOLE,
    )
