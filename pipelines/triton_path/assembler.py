"""What ptxas, or AMD's assembler, refused: at the lines of the assembly, and at the kernel's that they come from."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.dumps import amdgcn, ptx, ptxas
from pipelines.dumps.place import Place
from pipelines.trace import Diagnostic
from pipelines.triton_path.output import Output


def assembler_errors(output: Output) -> list[Diagnostic]:
    """Return the errors at the lines of the assembly."""
    if "amdgcn" in output.artifacts:
        return amdgcn.parse_errors(output.stderr)
    return ptxas.parse_errors(ptxas_log(output))


def tied_errors(output: Output) -> Iterator[Diagnostic]:
    """Yield the errors at the kernel's lines that the assembly names, then all of them at their lines of it."""
    errors = assembler_errors(output)
    places = _places(output) if errors else {}
    told: set[tuple[str, int, str]] = set()
    for error in errors:
        place = places.get(error.line or 0)
        if place and (place.file, place.line, error.message) not in told:
            told.add((place.file, place.line, error.message))
            yield error.model_copy(update={"file": place.file, "line": place.line, "column": None, "address": None})
    yield from errors


def refusal(output: Output) -> str:
    """Say in a sentence what was refused first."""
    hip = "amdgcn" in output.artifacts
    who = "AMD's assembler rejects the AMDGCN" if hip else "ptxas rejects the PTX"
    errors = assembler_errors(output)
    if not errors:
        return f"{who}: {output.stderr[-2000:] if hip else ptxas_log(output)[:2000]}"
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{who} at line {errors[0].line}: {errors[0].message}{more}"


def ptxas_log(output: Output) -> str:
    """Return ptxas's log without what varies."""
    return ptxas.normalize_log(_text(output, "ptxas-log"))


def _places(output: Output) -> dict[int, Place]:
    """Return the innermost place of each line of the assembly that is an instruction."""
    if "amdgcn" in output.artifacts:
        return {item.row: item.stack[0] for item in amdgcn.parse(_text(output, "amdgcn")) if item.stack}
    return {item.row: item.stack[0] for item in ptx.parse(_text(output, "ptx")) if item.stack}


def _text(output: Output, name: str) -> str:
    return output.artifacts.get(name, b"").decode("utf-8", errors="replace")
