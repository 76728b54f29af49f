"""What MLIR's diagnostic handler prints on stderr: ``kernel.py:32:17: error: ...``, then the source line."""

from __future__ import annotations

import re

from pipelines.trace import MAX_DIAGNOSTICS, Diagnostic

MAX_LINE = 4_000

_HEADER = re.compile(
    r"^(?P<file>[^\s:][^:\n]{0,300}):(?P<line>\d{1,7}):(?P<column>\d{1,7}): "
    r"(?P<severity>error|warning|remark|note): (?P<message>.*)$"
)


_BOILERPLATE = ("see current operation", "Failures have been detected while", "Pipeline failed while executing")


def parse_diagnostics(text: str) -> list[Diagnostic]:
    """Return the diagnostics in the order printed, each once; echoed source and dumped operations are left out."""
    found: dict[Diagnostic, None] = {}
    for line in text.split("\n"):
        match = _HEADER.match(line[: MAX_LINE + 400])
        if match and not match["message"].startswith(_BOILERPLATE):
            found[_diagnostic(match)] = None
        if len(found) >= MAX_DIAGNOSTICS:
            break
    return list(found)


def _diagnostic(match: re.Match[str]) -> Diagnostic:
    message = match["message"].strip()
    if match["severity"] == "remark":
        message = message.removeprefix("Warning: ")
    return Diagnostic.model_validate(
        {
            "severity": match["severity"],
            "message": message if len(message) <= MAX_LINE else message[:MAX_LINE] + " ...",
            "file": match["file"],
            "line": int(match["line"]),
            "column": int(match["column"]),
        }
    )


_NOISE = re.compile(
    r"^\s*#\d+ 0x|^Stack dump|^PLEASE submit|^\d+\.\s+Program arguments|0x[0-9a-f]{6,}"
    r"|^Fatal Python error|^Current thread|^Extension modules"
)


def last_words(text: str, lines: int = 6) -> str:
    """Return what a process said before it died, without stack addresses, which vary from run to run."""
    kept: list[str] = []
    for line in text[-65_536:].split("\n"):
        if _NOISE.search(line):
            continue
        if line.strip():
            kept.append(line.strip()[:1000])
    assertion = [line for line in kept if "Assertion" in line or "LLVM ERROR" in line or "UNREACHABLE" in line]
    return "\n".join(assertion[-2:] or kept[-lines:])
