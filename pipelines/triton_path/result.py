"""From a child's output to a manifest with its texts."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pipelines.dumps import ptx
from pipelines.dumps.diagnostics import last_words, parse_diagnostics
from pipelines.dumps.mlir import Record, read_records
from pipelines.dumps.ptxas import normalize_log, parse_errors, parse_resources
from pipelines.sandbox import Limits, Outcome
from pipelines.trace import (
    MAX_DIAGNOSTICS,
    Argument,
    Artifact,
    Diagnostic,
    Failure,
    Kernel,
    Launch,
    Manifest,
    Resources,
    SourceFile,
    Stage,
    Toolchain,
    digest,
)
from pipelines.triton_path.output import MAX_ARTIFACT, ArgumentMade, Output
from pipelines.triton_path.removed import hint_of
from pipelines.triton_path.spec import CompileSpec
from pipelines.triton_path.stages import build_stages, is_flush, unprinted_stage
from pipelines.triton_path.targets import chip


@dataclass
class Blobs:
    """Texts by digest, gathered while a manifest is built."""

    by_digest: dict[str, bytes] = field(default_factory=dict)

    def keep(self, data: bytes) -> str:
        """Store a text and return its digest."""
        name = digest(data)
        self.by_digest[name] = data
        return name


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


def read_dump(output: Output) -> tuple[Record, ...]:
    """Return the dump's records."""
    return tuple(record for record in read_records(output.dump) if not is_flush(record.header))


def build_manifest(spec: CompileSpec, toolchain: Toolchain, run: Run, blobs: Blobs) -> Manifest:
    """Return the manifest without SASS; ``blobs`` receives its texts."""
    output = run.output
    stages = build_stages(run.records, output.runs, output.ended, output.stages, blobs.keep)
    log = normalize_log(output.artifacts.get("ptxas-log", b"").decode("utf-8", errors="replace"))
    failure = find_failure(run, stages)
    return Manifest(
        pipeline="triton",
        status="failed" if failure else "ok",
        kernel=_kernel(spec, output, blobs),
        launch=_launch(output),
        target=chip(spec.target).target,
        options=dict(output.launch.options) if output.launch else dict(spec.options),
        toolchain=toolchain.model_copy(update={"commands": tuple(output.commands)}),
        stages=stages,
        artifacts=_artifacts(output, log, blobs),
        launch_metadata=output.metadata,
        resources=_resources(output, log),
        diagnostics=_bounded(_diagnostics(output, failure)),
        failure=failure,
    )


def _kernel(spec: CompileSpec, output: Output, blobs: Blobs) -> Kernel:
    made = output.launch
    if made is None:
        name = spec.kernel or (output.launches[spec.launch].kernel if spec.launch < len(output.launches) else "")
    return Kernel(
        name=made.name if made else name,
        file=spec.file,
        source=blobs.keep(spec.source.encode()),
        arguments=tuple(_argument(item) for item in made.arguments) if made else (),
        origin=made.origin if made else "none",
        files=tuple(SourceFile(name=n, digest=blobs.keep(text.encode())) for n, text in sorted(spec.files.items())),
        module=spec.module,
    )


def _argument(made: ArgumentMade) -> Argument:
    members = tuple(_argument(item) for item in made.members)
    return Argument(
        name=made.name,
        type=made.type,
        divisibility=made.divisibility,
        value=made.value,
        members=members,
        guessed=made.guessed,
    )


def _launch(output: Output) -> Launch | None:
    shown = output.launch.launch if output.launch else None
    return Launch(grid=shown.grid, arguments=shown.arguments, config=shown.config) if shown else None


def _artifacts(output: Output, log: str, blobs: Blobs) -> tuple[Artifact, ...]:
    data = {**output.artifacts, "ptxas-log": log.encode()}
    return tuple(
        Artifact(name=name, digest=blobs.keep(data[name]), binary=name == "cubin")
        for name in ("llvm-ir", "ptx", "cubin", "ptxas-log")
        if data.get(name)
    )


def _resources(output: Output, log: str) -> Resources | None:
    shared = output.metadata.get("shared")
    return parse_resources(log, shared if isinstance(shared, int) else None)


def _bounded(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    kept = list(itertools.islice(diagnostics, MAX_DIAGNOSTICS + 1))
    if len(kept) > MAX_DIAGNOSTICS:
        kept[MAX_DIAGNOSTICS - 1 :] = [Diagnostic(severity="note", message="there are more messages than are kept")]
    return tuple(kept)


def _diagnostics(output: Output, failure: Failure | None) -> Iterable[Diagnostic]:
    """Yield the user's own error first, then what the compiler printed, errors at the failing pass."""
    if output.error:
        for place in output.error.places:
            yield Diagnostic(
                severity="error",
                message=place.message or output.error.message,
                file=place.file,
                line=place.line,
                column=place.column + 1 if place.column is not None else None,
            )
        yield from _ptxas_errors(output)
    for note in output.launch.notes if output.launch else ():
        column = note.column + 1 if note.column is not None else None
        yield Diagnostic(severity="warning", message=note.message, file=note.file, line=note.line, column=column)
    for name in output.oversize:
        yield Diagnostic(severity="warning", message=f"{name} is larger than {MAX_ARTIFACT >> 20} MB and was not kept")
    for item in parse_diagnostics(output.stderr):
        at = failure.address if failure and item.severity == "error" else None
        yield item.model_copy(update={"address": at}) if at else item


def _ptxas_errors(output: Output) -> Iterable[Diagnostic]:
    """Yield ptxas's errors at the kernel's lines that the PTX names, then all of them at their lines of the PTX."""
    errors = parse_errors(normalize_log(output.artifacts.get("ptxas-log", b"").decode(errors="replace")))
    if not errors:
        return
    text = output.artifacts.get("ptx", b"").decode(errors="replace")
    places = {i.row: i.stack[0] for i in ptx.parse(text) if i.stack}
    told: set[tuple[str, int, str]] = set()
    for error in errors:
        place = places.get(error.line or 0)
        if place and (place.file, place.line, error.message) not in told:
            told.add((place.file, place.line, error.message))
            yield error.model_copy(update={"file": place.file, "line": place.line, "address": None})
    yield from errors


_SMALLER = "Submit it again with smaller tiles or fewer stages; what is shown came before the limit."


def _unprinted(run: Run) -> Failure | None:
    stage = unprinted_stage(run.records, run.output.runs, run.output.ended)
    if stage is None:
        return None
    message = f"the dump lacks passes of {stage}: the source changed how the compiler prints, or wrote into its dump"
    return Failure(kind="invalid", stage=stage, address=None, message=message)


def _out_of_memory(outcome: Outcome, output: Output) -> bool:
    said = output.stderr[-65_536:]
    return outcome.kind != "ok" and ("LLVM ERROR: out of memory" in said or "std::bad_alloc" in said)


def find_failure(run: Run, stages: Sequence[Stage]) -> Failure | None:
    """Return why the compilation ended early.

    None where PTX and cubin are there and every pass was printed, and while it runs.
    """
    output, outcome, limits = run.output, run.outcome, run.limits
    if outcome is None:
        return None
    stage, address = _where(output, stages)
    if run.forged:
        message = f"{run.forged}: the source wrote into the files that the compilation leaves"
        return Failure(kind="invalid", stage=stage, address=address, message=message)
    if outcome.kind == "ok" and not output.error and "cubin" in output.artifacts:
        return _unprinted(run)
    limit = {
        "timeout": f"the compilation took longer than {limits.wall_s:.0f} s and was stopped",
        "memory": f"the compilation used more than {limits.memory >> 30} GB of memory and was stopped",
        "disk": f"the compilation wrote more than {limits.disk >> 20} MB and was stopped",
        "processes": f"the compilation started more than {limits.processes} processes and was stopped",
    }
    if outcome.kind in limit:
        said = {"kind": outcome.kind, "message": limit[outcome.kind], "hint": _SMALLER}
        return Failure.model_validate({**said, "stage": stage, "address": address})
    if _out_of_memory(outcome, output):
        message = "the compiler ran out of memory and was stopped"
        return Failure(kind="memory", stage=stage, address=address, message=message, hint=_SMALLER)
    if output.error:
        return _error(output, stage, address)
    if outcome.kind == "ok":
        message = "the compilation ended without a result: the source closed its files or ended the process"
        return Failure(kind="invalid", stage=stage, address=address, message=message)
    how = f"signal {outcome.signal}" if outcome.signal else f"exit status {outcome.exit_code}"
    words = last_words(output.stderr) or "it printed nothing"
    message = f"the compiler aborted ({how}): {words}"
    hint = "This is a bug in the compiler, not in the kernel; the IR before the failing pass reproduces it."
    return Failure(kind="abort", stage=stage, address=address, message=message, hint=hint if address else None)


def _error(output: Output, stage: str | None, address: str | None) -> Failure:
    error = output.error
    assert error is not None  # noqa: S101 - the caller has looked
    message = error.message
    if error.type == "OSError" and f"[Errno {errno.ENOSPC}]" in message:
        message = "the server's disk is full; free some space and submit it again"
        return Failure(kind="disk", stage=stage, address=address, message=message)
    if error.type == "PTXASError":
        message = _ptxas_message(output)
    elif error.type == "RuntimeError" and message == "PassManager::run failed":
        errors = [d.message for d in parse_diagnostics(output.stderr) if d.severity == "error"]
        message = errors[0] if errors else "the pass failed without saying why"
    elif not error.user and error.type != "CompilationError":
        message = message if message.startswith(error.type) else f"{error.type}: {message}"
    return Failure(kind="error", stage=stage, address=address, message=message, hint=hint_of(message))


def _ptxas_message(output: Output) -> str:
    log = normalize_log(output.artifacts.get("ptxas-log", b"").decode("utf-8", errors="replace"))
    errors = parse_errors(log)
    if not errors:
        return f"ptxas rejects the PTX: {log[:2000]}"
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"ptxas rejects the PTX at line {errors[0].line}: {errors[0].message}{more}"


def _where(output: Output, stages: Sequence[Stage]) -> tuple[str | None, str | None]:
    """Return the stage that did not complete and its failing pass."""
    stage = output.begun
    if stage is None or stage in output.complete:
        return stage, None
    if stage == "cubin":
        return "ptx", "ptx" if "ptx" in output.artifacts else None
    # LLVM IR has no passes of its own here: what it was made from is the last snapshot of the dialect.
    within = "llvm-dialect" if stage in ("llvm-ir", "ptx") else stage
    made = next((s for s in stages if s.name == within), None)
    failed = [p for p in made.passes if p.failed] if made else []
    left = [p for p in made.passes if p.text and p.parent is None] if made else []
    last = (failed or left)[-1:]
    return stage, f"{within}:{last[0].ordinal}" if last else None
