"""From a child's output to a manifest with its texts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from pipelines.dumps import amdgcn
from pipelines.dumps.diagnostics import parse_diagnostics
from pipelines.dumps.mlir import Record, read_records
from pipelines.dumps.ptxas import parse_resources
from pipelines.kernels.discover import discover
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
    Toolchain,
    digest,
)
from pipelines.triton_path.assembler import ptxas_log, tied_errors
from pipelines.triton_path.failure import find_failure, hinted
from pipelines.triton_path.output import ARTIFACTS, MAX_ARTIFACT, ArgumentMade, Output, Run
from pipelines.triton_path.spec import CompileSpec
from pipelines.triton_path.stages import build_stages, is_flush
from pipelines.triton_path.targets import BINARIES, chip


@dataclass
class Blobs:
    """Texts by digest, gathered while a manifest is built."""

    by_digest: dict[str, bytes] = field(default_factory=dict)

    def keep(self, data: bytes) -> str:
        """Store a text and return its digest."""
        name = digest(data)
        self.by_digest[name] = data
        return name


def read_dump(output: Output) -> tuple[Record, ...]:
    """Return the dump's records."""
    return tuple(record for record in read_records(output.dump) if not is_flush(record.header))


def build_manifest(spec: CompileSpec, toolchain: Toolchain, run: Run, blobs: Blobs) -> Manifest:
    """Return the manifest without SASS; ``blobs`` receives its texts."""
    output = run.output
    stages = build_stages(run.records, output.runs, output.ended, output.stages, blobs.keep)
    log = ptxas_log(output)
    failure = hinted(find_failure(run, stages, chip(spec.target).backend.binary), output)
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
        diagnostics=_bounded(itertools.chain(_diagnostics(output, failure), _too_large(spec, output))),
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
        pointer_range=made.pointer_range,
    )


def _launch(output: Output) -> Launch | None:
    shown = output.launch.launch if output.launch else None
    return Launch(grid=shown.grid, arguments=shown.arguments, config=shown.config) if shown else None


def _artifacts(output: Output, log: str, blobs: Blobs) -> tuple[Artifact, ...]:
    data = {**output.artifacts, "ptxas-log": log.encode()}
    return tuple(
        Artifact(name=name, digest=blobs.keep(data[name]), binary=name in BINARIES)
        for name in ARTIFACTS
        if data.get(name)
    )


def _resources(output: Output, log: str) -> Resources | None:
    known = output.metadata.get("shared")
    shared = known if isinstance(known, int) else None
    text = output.artifacts.get("amdgcn")
    if text is not None:
        return amdgcn.parse_resources(text.decode("utf-8", errors="replace"), shared)
    return parse_resources(log, shared)


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
        yield from tied_errors(output)
    for note in output.launch.notes if output.launch else ():
        column = note.column + 1 if note.column is not None else None
        yield Diagnostic(severity=note.severity, message=note.message, file=note.file, line=note.line, column=column)
    for name in output.oversize:
        yield Diagnostic(severity="warning", message=f"{name} is larger than {MAX_ARTIFACT >> 20} MB and was not kept")
    if "amdgcn" in output.artifacts:
        yield from amdgcn.parse_complaints(output.stderr)
    for item in parse_diagnostics(output.stderr):
        if item.file == amdgcn.ASSEMBLER:
            continue
        at = failure.address if failure and item.severity == "error" else None
        yield item.model_copy(update={"address": at}) if at else item


def _too_large(spec: CompileSpec, output: Output) -> Iterable[Diagnostic]:
    """Warn at the kernel where no launch of it can succeed: a block asks for more memory than the chip has for one."""
    target, shared = chip(spec.target), output.metadata.get("shared")
    if not isinstance(shared, int) or shared <= target.shared or output.launch is None:
        return
    memory = {"cuda": "shared memory", "hip": "LDS"}[target.backend.name]
    kernels = {kernel.name: kernel.line for kernel in discover(spec.source).kernels}
    yield Diagnostic(
        severity="warning",
        message=f"a launch fails with OutOfResources: a block needs {shared:,} bytes of {memory}, "
        f"and {target.arch} has {target.shared:,}; smaller tiles or fewer stages need less",
        file=spec.file,
        line=kernels.get(output.launch.name),
    )
