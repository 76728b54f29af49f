"""The log of ``ptxas -v``: resources of a kernel, and errors tied to lines of the PTX."""

from __future__ import annotations

import itertools
import re

from pipelines.trace import Diagnostic, Resources

MAX_LOG = 1 << 20
MAX_ERRORS = 1_000
MAX_LINE = 4_000

_USED = re.compile(r"Used (\d{1,6}) registers")
_BARRIERS = re.compile(r"used (\d{1,4}) barriers")
_SHARED = re.compile(r"(\d{1,9}) bytes smem")
_CONSTANT = re.compile(r"(\d{1,9}) bytes cmem\[0\]")
_STACK = re.compile(r"(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads")
_ERROR = re.compile(
    r"ptxas[\w-]* .*?, line (?P<line>[0-9]{1,9}); (?P<severity>error|warning|fatal)\s*: (?P<message>.*)"
)
_TEMPORARY = re.compile(r"tmp[a-z0-9_]{4,}")
_ABSOLUTE = re.compile(r"(?:^|(?<=[\s'\"(]))/")
_VARYING = "Compile time = "


def normalize_log(text: str) -> str:
    """Take out what varies from run to run: the temporary file's path and the compile time.

    At most ``MAX_LOG`` characters are read.
    """
    lines = text[:MAX_LOG].split("\n")
    return "\n".join(_without_path(line) for line in lines if _VARYING not in line).strip("\n")


def _without_path(line: str) -> str:
    """Name the input ``kernel.ptx``; its path is everything from the first ``/`` that begins a word."""
    pieces = line.split(".ptx")
    length = 0
    for index, piece in enumerate(pieces[:-1]):
        length += len(piece)
        _, slash, name = piece.rpartition("/")
        word = name if slash else name.rpartition(" ")[2]
        if _TEMPORARY.fullmatch(word) and not pieces[index + 1].startswith("/"):
            absolute = _ABSOLUTE.search(line, 0, length)
            start = absolute.start() if absolute else length - len(word)
            return line[:start] + "kernel.ptx" + line[length + len(".ptx") :]
        length += len(".ptx")
    return line


def parse_resources(log: str, shared: int | None = None) -> Resources | None:
    """Read registers, spills, stack and barriers; ``shared`` is what the compiler allocates at launch, in bytes.

    Returns None where the log tells of no kernel.
    """
    used = _USED.search(log)
    if not used:
        return None
    stack = _STACK.search(log)
    return Resources(
        registers=int(used[1]),
        stack=int(stack[1]) if stack else None,
        spill_stores=int(stack[2]) if stack else None,
        spill_loads=int(stack[3]) if stack else None,
        barriers=_number(_BARRIERS, log),
        shared=shared if shared is not None else _number(_SHARED, log),
        constant=_number(_CONSTANT, log),
    )


def parse_errors(log: str) -> list[Diagnostic]:
    """Return ptxas's first ``MAX_ERRORS`` errors, at their lines of the PTX."""
    matches = (_ERROR.match(line[:MAX_LINE]) for line in log[:MAX_LOG].split("\n"))
    return [_error(match) for match in itertools.islice(filter(None, matches), MAX_ERRORS)]


def _error(match: re.Match[str]) -> Diagnostic:
    return Diagnostic(
        severity="warning" if match["severity"] == "warning" else "error",
        message=match["message"].strip(),
        file="kernel.ptx",
        line=int(match["line"]),
        address="ptx",
    )


def _number(pattern: re.Pattern[str], log: str) -> int | None:
    match = pattern.search(log)
    return int(match[1]) if match else None
