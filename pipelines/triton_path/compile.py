"""Compile a kernel on Triton's path: one confined child makes the passes and the artifacts, a second disassembles."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import JsonValue, ValidationError

from pipelines.dumps.diagnostics import last_words
from pipelines.dumps.mlir import Record, read_records
from pipelines.dumps.sass import count_instructions
from pipelines.sandbox import Confinement, Finished, Limits, Outcome, Slot
from pipelines.trace import Artifact, Diagnostic, Manifest, Resources, Toolchain, TraceError
from pipelines.triton_path.follow import Follower
from pipelines.triton_path.options import OptionField, check_options
from pipelines.triton_path.output import (
    MAX_ARTIFACT,
    MAX_STDERR,
    ForgedOutputError,
    Output,
    Run,
    read_ends,
    read_output,
)
from pipelines.triton_path.result import Blobs, build_manifest, read_dump
from pipelines.triton_path.sandboxes import CHILD, Sandboxes
from pipelines.triton_path.spec import Compiled, CompileSpec, Event
from pipelines.triton_path.stages import is_flush
from pipelines.triton_path.targets import ASSEMBLIES, chip
from pipelines.triton_path.toolchain import Described, binaries, toolchain, without_torch

log = logging.getLogger(__name__)

DUMP = "dump.mlir"
# Reading a dump takes some 20 ms for each MB, in which nobody watches the child; a larger one is shown at the end.
MAX_INTERIM_DUMP = 64 << 20
NVDISASM_FLAGS = ("-c", "-gi", "-hex")

_ENVIRONMENT = {
    "TRITON_ALWAYS_COMPILE": "1",
    "TRITON_DEFAULT_FP_FUSION": "1",
    "TRITON_DUMP_PTXAS_LOG": "1",
    "MLIR_ENABLE_DIAGNOSTICS": "remarks",
    "MLIR_ENABLE_DUMP": "1",
}
_BLOCK = 4096
# How a compiler ends by itself; any other signal came from outside.
_OWN_SIGNALS = (signal.SIGABRT, signal.SIGSEGV, signal.SIGILL, signal.SIGFPE, signal.SIGBUS)


class Compiler:
    """Owns the sandbox of the default toolchain; safe to use from several threads."""

    def __init__(
        self,
        directory: Path,
        *,
        trust_code: bool = False,
        limits: Limits | None = None,
        libraries: tuple[Path, ...] = (),
    ) -> None:
        """Prepare; ``libraries`` are further folders of installed packages that a source may import from."""
        self.limits = limits or Limits()
        self._sandboxes = Sandboxes(directory, self.limits, libraries, trust_code=trust_code)
        self._sandbox = self._sandboxes.plain
        self._described: Described | None = None
        self._toolchain: Toolchain | None = None

    def start(self) -> None:
        """Warm the zygote and ask the toolchain what it is; raise SandboxUnavailable where that cannot be."""
        self._sandboxes.start()
        with self._sandbox.run(f"{CHILD}:describe_toolchain", {}) as finished:
            data = finished.slot.read("toolchain.json", MAX_STDERR)
            if data is None:
                stderr = finished.slot.read("stderr", MAX_STDERR) or b""
                raise RuntimeError(f"the toolchain does not run: {stderr.decode(errors='replace')[-2000:]}")
        self._described = Described.model_validate_json(data)
        self._toolchain = toolchain(self._described)

    def close(self) -> None:
        """End the zygote and everything forked from it."""
        self._sandboxes.close()

    def expect(self) -> None:
        """Say that a compilation is about to be asked for, so that it starts sooner."""
        self._sandbox.expect()

    @property
    def confinement(self) -> Confinement:
        """What confines compilations on this machine."""
        return self._sandbox.confinement

    @property
    def toolchain(self) -> Toolchain:
        """The files that compile; known after ``start``."""
        if self._toolchain is None:
            raise RuntimeError("the compiler is not started")
        return self._toolchain

    @property
    def options(self) -> dict[str, tuple[OptionField, ...]]:
        """The options of each backend's own class, by the backend's name; known after ``start``."""
        if self._described is None:
            raise RuntimeError("the compiler is not started")
        return self._described.options

    def check(self, spec: CompileSpec) -> None:
        """Raise UnknownTargetError or OptionError where the spec cannot be compiled at all."""
        check_options(self.options[chip(spec.target).backend.name], spec.options)

    def compile(self, spec: CompileSpec, on_event: Callable[[Event], None]) -> Compiled:
        """Compile and disassemble; a failure of the kernel is a result, never an exception.

        ``on_event`` is called from this thread; ``ready`` carries all passes and PTX, and comes while ptxas runs.
        """
        self.check(spec)
        follower = Follower(on_event)
        tried, interim = False, None

        def poll(slot: Slot) -> None:
            nonlocal tried, interim
            follower.poll(slot)
            if follower.ptx_known and not tried:
                tried, interim = True, self._interim(spec, slot)
                if interim:
                    on_event(Event("ready", interim=interim))

        with self._child(spec, {"MLIR_DUMP_PATH": DUMP}, poll) as finished:
            poll(finished.slot)
            run = self._read(finished.slot, finished.outcome)
        if _was_cut(run):
            run = self._recover(spec, run)
        manifest, blobs = self._manifest(spec, run)
        cacheable = _repeats(manifest, finished.outcome) and not _was_stopped(run.output)
        times, launches = tuple(run.output.times), run.output.launches
        if "cubin" in run.output.artifacts:
            if not interim:
                on_event(Event("ready", interim=Compiled(manifest, dict(blobs.by_digest), times, False, launches)))
            manifest = self.disassemble(manifest, run.output.artifacts["cubin"], blobs)
            on_event(Event("artifact", {"name": "sass"}))
        return Compiled(manifest, blobs.by_digest, times, cacheable, launches)

    def _interim(self, spec: CompileSpec, slot: Slot) -> Compiled | None:
        """Read what is there before ptxas has ended; None where that makes no manifest, which the end will tell."""
        if slot.size(DUMP) > MAX_INTERIM_DUMP:
            return None
        blobs = Blobs()
        try:
            output = read_output(slot)
            run = Run(output, None, self.limits, read_dump(output))
            manifest = build_manifest(spec, without_torch(self.toolchain), run, blobs)
            manifest.check()
        except (ForgedOutputError, ValidationError, TraceError) as error:
            log.warning("output that makes no manifest yet: %s", error)
            return None
        return Compiled(manifest, blobs.by_digest, tuple(output.times), False, output.launches)

    def compile_again(
        self, spec: CompileSpec, flags: Mapping[str, JsonValue], limits: Limits, poll: Callable[[Slot], None] | None
    ) -> AbstractContextManager[Finished]:
        """Run a compilation once more without MLIR's dumps; ``flags`` ask the child for something else instead."""
        return self._child(spec, {"MLIR_ENABLE_DUMP": "0", "MLIR_ENABLE_DIAGNOSTICS": ""}, poll, flags, limits)

    def _child(
        self,
        spec: CompileSpec,
        environment: dict[str, str],
        poll: Callable[[Slot], None] | None,
        flags: Mapping[str, JsonValue] | None = None,
        limits: Limits | None = None,
    ) -> AbstractContextManager[Finished]:
        request: dict[str, JsonValue] = {
            **spec.model_dump(mode="json", exclude={"source", "files"}),
            "files": list[JsonValue](sorted(spec.files)),
            "properties": dict(chip(spec.target).properties()),
            "device": chip(spec.target).name,
            **(flags or {}),
        }
        return self._sandboxes.of(spec).run(
            f"{CHILD}:compile_kernel",
            request,
            {path: text.encode() for path, text in {**spec.files, spec.file: spec.source}.items()},
            limits=limits,
            env={**_ENVIRONMENT, **environment},
            poll=poll,
        )

    def _read(self, slot: Slot, outcome: Outcome) -> Run:
        try:
            output = read_output(slot)
        except ForgedOutputError as error:
            return Run(Output(), outcome, self.limits, forged=str(error))
        return Run(output, outcome, self.limits, read_dump(output))

    def _manifest(self, spec: CompileSpec, run: Run) -> tuple[Manifest, Blobs]:
        """Build the manifest; output that no manifest can hold is told as forged, since ours always fits."""
        blobs = Blobs()
        try:
            manifest = build_manifest(spec, without_torch(self.toolchain), run, blobs)
            manifest.check()
        except (ValidationError, TraceError) as error:
            log.warning("output that makes no manifest: %s", error)
            blobs, forged = Blobs(), "the compilation's output makes no trace"
            run = Run(Output(), run.outcome, self.limits, forged=forged)
            manifest = build_manifest(spec, without_torch(self.toolchain), run, blobs)
        return manifest, blobs

    def _recover(self, spec: CompileSpec, run: Run) -> Run:
        """Get back what was still in the dead child's buffer: dump once more, unbuffered, to stderr.

        The rerun counts only where it repeats what is known and goes further.
        """
        with self._child(spec, {"MLIR_ENABLE_DIAGNOSTICS": ""}, None) as finished:
            stderr = finished.slot.read("stderr", self.limits.file, cut=True) or b""
        found = [record for record in read_records(stderr) if not is_flush(record.header)]
        records = [Record(record.header, _module_only(record.text)) for record in found]
        known = run.records[:-1]
        agrees = all(a.header == b.header and a.text == b.text for a, b in zip(known, records, strict=False))
        if len(records) < len(run.records) or not agrees:
            return run
        return Run(run.output, run.outcome, run.limits, tuple(records))

    def disassemble(
        self, manifest: Manifest, cubin: bytes, blobs: Blobs, clean: Callable[[bytes], bytes] = bytes
    ) -> Manifest:
        """Add SASS, after ``clean``, and its instruction count; where nvdisasm fails, a diagnostic says so."""
        request: dict[str, JsonValue] = {"nvdisasm": str(binaries()[-1]), "flags": list(NVDISASM_FLAGS)}
        with self._sandbox.run(f"{CHILD}:disassemble", request, {"input.cubin": cubin}) as finished:
            sass = finished.slot.read("sass.out", MAX_ARTIFACT) if finished.outcome.kind == "ok" else None
            stderr = read_ends(finished.slot, "stderr", MAX_STDERR)
        if not sass:
            words = last_words(stderr.decode("utf-8", errors="replace")) or finished.outcome.kind
            diagnostic = Diagnostic(severity="warning", message=f"nvdisasm gave no SASS: {words}")
            return manifest.model_copy(update={"diagnostics": (*manifest.diagnostics, diagnostic)})
        text = clean(sass).rstrip(b"\n")
        resources = manifest.resources or Resources()
        commands = (*manifest.toolchain.commands, " ".join(["nvdisasm", *NVDISASM_FLAGS, "kernel.cubin"]))
        instructions = count_instructions(text.decode("utf-8", errors="replace"))
        return manifest.model_copy(
            update={
                "artifacts": (*manifest.artifacts, Artifact(name="sass", digest=blobs.keep(text))),
                "resources": resources.model_copy(update={"instructions": instructions}),
                "toolchain": manifest.toolchain.model_copy(update={"commands": commands}),
            }
        )


def _repeats(manifest: Manifest, outcome: Outcome) -> bool:
    """Say whether the same input would end so again: not after a limit, a full disk, or a kill from outside."""
    if manifest.failure is None or manifest.failure.kind == "error":
        return True
    return manifest.failure.kind == "abort" and outcome.signal in _OWN_SIGNALS


def _was_stopped(output: Output) -> bool:
    """Say whether the launch code took too long, so that it may make more launches another time."""
    stopped = output.error is not None and output.error.type == "TimeUpError"
    return stopped or (output.launch is not None and not output.launch.complete)


def _was_cut(run: Run) -> bool:
    """Say whether the process died with dumps in its buffer: then only whole blocks of the file were written."""
    output = run.output
    ended = output.error is not None or not output.complete.isdisjoint(ASSEMBLIES)
    return not ended and output.begun is not None and len(output.dump) % _BLOCK == 0


def _module_only(text: bytes) -> bytes:
    """Drop what other messages on stderr follow the IR: a module ends with a brace or a location in column 0."""
    lines = text.split(b"\n")
    while lines and not lines[-1].startswith((b"}", b"#")):
        lines.pop()
    return b"\n".join(lines)
