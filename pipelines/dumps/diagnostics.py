"""What MLIR's diagnostic handler prints on stderr: ``kernel.py:32:17: error: ...``, then the source line."""

from __future__ import annotations

import re

from pipelines.trace import MAX_DIAGNOSTICS, Diagnostic

MAX_LINE = 4_000
MAX_PRINTED = 8 << 20
MAX_KEPT = MAX_DIAGNOSTICS - 100  # room for what a caller adds

_HEADER = re.compile(
    r"(?P<file>[^\s:][^:\n]{0,300}):(?P<line>[0-9]{1,7}):(?P<column>[0-9]{1,7}): "
    r"(?P<severity>error|warning|remark|note): (?P<message>.*)"
)
_BOILERPLATE = ("see current operation", "Failures have been detected while", "Pipeline failed while executing")
_ORDER = ("error", "warning", "note", "remark")

_Key = tuple[str, str, int, int, str]


def parse_diagnostics(text: str) -> list[Diagnostic]:
    """Return the diagnostics in the order printed, each once; echoed source and dumped operations are left out.

    Of more than ``MAX_KEPT``, errors are kept before warnings, notes and remarks, and a last note says how many are
    missing. At most ``MAX_PRINTED`` characters are read.
    """
    found: dict[_Key, None] = {}
    for line in text[:MAX_PRINTED].split("\n"):
        match = _HEADER.match(line[: MAX_LINE + 400])
        if match and not match["message"].startswith(_BOILERPLATE):
            found[_key(match)] = None
    printed = list(found)
    if len(printed) <= MAX_KEPT:
        return [_diagnostic(key) for key in printed]
    ranked = sorted(range(len(printed)), key=lambda index: _ORDER.index(printed[index][0]))
    kept = [_diagnostic(printed[index]) for index in sorted(ranked[: MAX_KEPT - 1])]
    missing = len(printed) - len(kept)
    return [*kept, Diagnostic(severity="note", message=f"{missing} more messages of the compiler are left out here")]


def _key(match: re.Match[str]) -> _Key:
    message = match["message"].strip()
    if match["severity"] == "remark":
        message = message.removeprefix("Warning: ")
    message = message if len(message) <= MAX_LINE else message[:MAX_LINE] + " ..."
    return match["severity"], match["file"], int(match["line"]), int(match["column"]), message


def _diagnostic(key: _Key) -> Diagnostic:
    severity, file, line, column, message = key
    return Diagnostic.model_validate(
        {"severity": severity, "message": message, "file": file, "line": line, "column": column}
    )


_TAIL = 65_536
_BEFORE = 3
_LONGEST = 1_000
_END = ("Assertion `", "Assertion failed", "LLVM ERROR", "UNREACHABLE")
_NOISE = re.compile(
    r"#[0-9]+ 0x|Stack dump|PLEASE submit|[0-9]+\.\s+Program arguments|\.\.\.$|<truncated rest of calls>"
    r'|Fatal Python error|(?:Current thread|Thread) 0x|Extension modules|File "[^"]*/[^"]*", line [0-9]+ in '
)
_STACK = re.compile(r"\[0x[0-9a-fA-F]+\]$|\(\+0x[0-9a-fA-F]+\)")
_CARET = re.compile(r"[~^]+")
_POINTER = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_PATH = re.compile(r"(?<![\w./>])/(?:[^\s/'\"():,;]+/)*([^\s/'\"():,;]+)")


def last_words(text: str, lines: int = 6) -> str:
    """Return what a process said before it died.

    That is the assertion with the lines before it, which carry the reason, or else the last ``lines``. What varies from
    run to run and from server to server is left out: stacks, addresses, the folders of absolute paths. So are remarks
    and echoed source, which are told as diagnostics.
    """
    kept = _told(text[-_TAIL:])
    ends = [index for index, line in enumerate(kept) if any(mark in line for mark in _END)]
    if ends:
        kept, lines = kept[: ends[-1] + 1], _BEFORE + 1
    return "\n".join(kept[-lines:])


def _told(text: str) -> list[str]:
    kept: list[str] = []
    echo: int | None = None  # where the source line lands that follows a diagnostic, with a caret below it
    for line in text.split("\n"):
        line = line.strip()[:_LONGEST]
        diagnostic = _HEADER.match(line)
        if _CARET.fullmatch(line):
            if echo is not None and len(kept) == echo + 1:
                kept.pop()
            echo = None
        elif line and not (diagnostic and diagnostic["severity"] != "error") and not _is_noise(line):
            kept.append(_PATH.sub(r"\1", _POINTER.sub("0x...", line)))
        if diagnostic:
            echo = len(kept)
    return kept


def _is_noise(line: str) -> bool:
    return bool(_NOISE.match(line) or _STACK.search(line))
