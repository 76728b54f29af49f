"""The stream that MLIR's pass manager prints with IR printing on, cut into records.

Two header formats are read, with or without the operation that the pass ran on::

    // -----// IR Dump Before CSEPass: cse ('builtin.module' operation) //----- //          (2026, Triton 3.9)
    // -----// IR Dump After CSE Failed (cse) ('func.func' operation: @f) //----- //         (upstream)

and the steps that Triton's pipeliner and warp specializer print from inside themselves::

    // -----// SoftwarePipeliner internal IR Dump After: ExpandLoops
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MARK = b"// -----// "

_HEADER = re.compile(
    r"// -----// IR Dump (?P<when>Before|After) (?P<class>[\w:<>,() -]*?)(?P<failed> Failed)?"
    r"(?:: (?P<colon>[^\n]*?)| \((?P<paren>[^\n']*?)\))?"
    r"(?: \('(?P<anchor>[^'\n]*)' operation(?:: @(?P<function>[^\n]*?))?\))? //----- //\s*"
)
_STEP = re.compile(r"// -----// (?P<owner>[\w ]+?) internal IR Dump After: (?P<step>[^\n]*)")
_MAX_HEADER = 16_384


@dataclass(frozen=True)
class Header:
    """What a dump's header says. ``argument`` is the pass with its options, exactly as the compiler prints it."""

    when: Literal["before", "after", "failed", "step"]
    name: str
    argument: str
    anchor: str
    function: str | None = None


@dataclass(frozen=True)
class Record:
    """A header and the IR that followed it, as UTF-8 bytes without trailing newlines."""

    header: Header
    text: bytes


def parse_header(line: str) -> Header | None:
    """Read one header line, or return None where it is none."""
    if len(line) > _MAX_HEADER:
        return None
    step = _STEP.match(line)
    if step:
        return Header("step", step["step"].strip(), step["owner"].strip(), "")
    match = _HEADER.fullmatch(line)
    if not match:
        return None
    argument = (match["colon"] or match["paren"] or match["class"]).strip()
    when: Literal["before", "after", "failed"] = "before"
    if match["when"] == "After":
        when = "failed" if match["failed"] else "after"
    return Header(when, pass_name(argument), argument, match["anchor"] or "", match["function"])


def pass_name(argument: str) -> str:
    """Return ``canonicalize`` of ``canonicalize{max-iterations=10}``, and the class of a pass that has no name."""
    name = argument.partition("{")[0].strip()
    if name.startswith("unknown<"):
        return name.removeprefix("unknown<").removesuffix(">").rpartition("::")[2]
    return name


def read_records(data: bytes) -> Iterator[Record]:
    """Cut a whole dump; text before the first header is dropped, an unreadable header's IR with it."""
    at = _next_mark(data, 0)
    while at >= 0:
        end_of_line = data.find(b"\n", at)
        end_of_line = len(data) if end_of_line < 0 else end_of_line
        following = _next_mark(data, end_of_line)
        header = parse_header(data[at:end_of_line].decode("utf-8", errors="replace"))
        if header:
            body = data[end_of_line + 1 : following if following >= 0 else len(data)]
            yield Record(header, body.rstrip(b"\n"))
        at = following


class HeaderFollower:
    """Finds the headers in a dump that is still being written, piece by piece."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Header]:
        """Return the headers completed by these bytes."""
        data = self._rest + data
        found: list[Header] = []
        at, done = _next_mark(data, 0), 0
        while at >= 0:
            end = data.find(b"\n", at)
            if end < 0:
                self._rest = data[at:] if len(data) - at <= _MAX_HEADER else b""
                return found
            header = parse_header(data[at:end].decode("utf-8", errors="replace"))
            if header:
                found.append(header)
            done = end
            at = _next_mark(data, end)
        self._rest = data[max(done, len(data) - len(MARK)) :]
        return found


def _next_mark(data: bytes, start: int) -> int:
    if start == 0 and data.startswith(MARK):
        return 0
    at = data.find(b"\n" + MARK, start)
    return at + 1 if at >= 0 else -1
