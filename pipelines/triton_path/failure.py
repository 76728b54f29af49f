"""Why a compilation ended early, and how far it came."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from pipelines.dumps.diagnostics import last_words, parse_diagnostics
from pipelines.sandbox import Outcome
from pipelines.trace import Failure, Stage
from pipelines.triton_path.assembler import refusal
from pipelines.triton_path.output import Output, Run
from pipelines.triton_path.removed import hint_of
from pipelines.triton_path.stages import unprinted_stage
from pipelines.triton_path.targets import ASSEMBLIES, BINARIES

# What Triton raises where MLIR has said the reason on stderr.
_SILENT = ("PassManager::run failed", "error encountered during parsing")
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


def find_failure(run: Run, stages: Sequence[Stage], binary: str) -> Failure | None:
    """Return why the compilation ended early.

    None where the ``binary`` is there and every pass was printed, and while it runs.
    """
    output, outcome, limits = run.output, run.outcome, run.limits
    if outcome is None:
        return None
    stage, address = _where(output, stages)
    if run.forged:
        message = f"{run.forged}: the source wrote into the files that the compilation leaves"
        return Failure(kind="invalid", stage=stage, address=address, message=message)
    if outcome.kind == "ok" and not output.error and binary in output.artifacts:
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


_GUESSED = "The signature is guessed. Change the guessed arguments that are wrong, and compile it again: "


def hinted(failure: Failure | None, output: Output) -> Failure | None:
    """Add to the failure of a guessed signature that the guess may be at fault."""
    made = output.launch
    if failure is None or failure.kind != "error" or made is None or made.origin != "guessed":
        return failure
    guessed = ", ".join(item.name for item in made.arguments if item.guessed)
    hint = " ".join(part for part in (failure.hint, f"{_GUESSED}{guessed}.") if part)
    return failure.model_copy(update={"hint": hint}) if guessed else failure


def _error(output: Output, stage: str | None, address: str | None) -> Failure:
    error = output.error
    assert error is not None  # noqa: S101 - the caller has looked
    message = error.message
    if error.type == "OSError" and f"[Errno {errno.ENOSPC}]" in message:
        message = "the server's disk is full; free some space and submit it again"
        return Failure(kind="disk", stage=stage, address=address, message=message)
    if error.type == "PTXASError" or error.stage == "hsaco":
        message = refusal(output)
    elif error.type == "RuntimeError" and message in _SILENT:
        errors = [d.message for d in parse_diagnostics(output.stderr) if d.severity == "error"]
        message = errors[0] if errors else f"{message}, without saying why"
    elif not error.user and error.type != "CompilationError":
        message = message if message.startswith(error.type) else f"{error.type}: {message}"
    return Failure(kind="error", stage=stage, address=address, message=message, hint=hint_of(message))


def _where(output: Output, stages: Sequence[Stage]) -> tuple[str | None, str | None]:
    """Return the stage that did not complete and its failing pass."""
    stage = output.begun
    if stage is None or stage in output.complete:
        return stage, None
    if stage in BINARIES:
        made_from = next((name for name in ASSEMBLIES if name in output.artifacts), None)
        return made_from or stage, made_from
    # LLVM IR has no passes of its own here: what it was made from is the last snapshot of the dialect.
    within = "llvm-dialect" if stage == "llvm-ir" or stage in ASSEMBLIES else stage
    made = next((s for s in stages if s.name == within), None)
    failed = [p for p in made.passes if p.failed] if made else []
    left = [p for p in made.passes if p.text and p.parent is None] if made else []
    last = (failed or left)[-1:]
    return stage, f"{within}:{last[0].ordinal}" if last else None
