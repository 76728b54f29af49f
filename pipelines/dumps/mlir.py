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

from pipelines.trace import MAX_HEADER, MAX_PASSES

MARK = b"// -----// "
MAX_RECORDS = MAX_PASSES + 1_000

_DUMP = "// -----// IR Dump "
_END = " //----- //"
_STEP = " internal IR Dump After: "
_OWNER = re.compile(r"[\w ]+")


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
    """Read one header line, or return None where it is none; the time is linear in its length."""
    if len(line) > MAX_HEADER:
        return None
    if not line.startswith(_DUMP):
        return _step(line)
    line = line.rstrip()
    moment, space, body = line.removeprefix(_DUMP).removesuffix(_END).partition(" ")
    if moment not in ("Before", "After") or not space or not line.endswith(_END):
        return None
    body, anchor, function = _operation(body)
    owner, argument = _pass(body)
    when: Literal["before", "after", "failed"] = "before"
    if moment == "After":
        when = "failed" if owner.endswith(" Failed") else "after"
    argument = argument.strip() or owner.removesuffix(" Failed").strip()
    return Header(when, pass_name(argument), argument, anchor, function) if argument else None


def _step(line: str) -> Header | None:
    owner, mark, step = line.removeprefix(MARK.decode()).partition(_STEP)
    if not mark or not line.startswith(MARK.decode()) or not _OWNER.fullmatch(owner):
        return None
    return Header("step", step.removesuffix(_END).strip(), owner.strip(), "")


def _operation(body: str) -> tuple[str, str, str | None]:
    """Split ``CSE (cse) ('func.func' operation: @f)`` before the operation that the pass ran on."""
    at = body.rfind(" ('")
    if at < 0 or not body.endswith(")"):
        return body, "", None
    anchor, mark, function = body[at + 3 : -1].partition("' operation")
    if not mark or (function and not function.startswith(": @")):
        return body, "", None
    return body[:at], anchor, function.removeprefix(": @") or None


def _pass(body: str) -> tuple[str, str]:
    """Split ``CSEPass: cse``, ``CSE (cse)`` or ``CSE`` into the class and the pass as it is printed."""
    colon, bracket = body.find(": "), body.find(" (")
    if bracket >= 0 and (colon < 0 or bracket < colon) and body.endswith(")"):
        return body[:bracket], body[bracket + 2 : -1]
    if colon >= 0:
        return body[:colon], body[colon + 2 :]
    return body, ""


def pass_name(argument: str) -> str:
    """Return ``canonicalize`` of ``canonicalize{max-iterations=10}``, and the class of a pass that has no name."""
    name = argument.partition("{")[0].strip()
    if name.startswith("unknown<"):
        return name.removeprefix("unknown<").removesuffix(">").rpartition("::")[2]
    return name


def read_records(data: bytes) -> Iterator[Record]:
    """Cut a whole dump; text before the first header is dropped, an unreadable header's IR with it.

    Reading stops after ``MAX_RECORDS``: a dump can be forged, and one of nothing but headers would fill the memory.
    """
    at, found = _next_mark(data, 0), 0
    while at >= 0 and found < MAX_RECORDS:
        end_of_line = data.find(b"\n", at)
        end_of_line = len(data) if end_of_line < 0 else end_of_line
        following = _next_mark(data, end_of_line)
        header = _header(data, at, end_of_line)
        if header:
            found += 1
            body = data[end_of_line + 1 : following if following >= 0 else len(data)]
            yield Record(header, body.rstrip(b"\n"))
        at = following


class HeaderFollower:
    """Finds the headers in a dump that is still being written, piece by piece."""

    def __init__(self) -> None:
        self._rest = b"\n"

    def feed(self, data: bytes) -> list[Header]:
        """Return the headers completed by these bytes."""
        data = self._rest + data
        found: list[Header] = []
        at, done = data.find(b"\n" + MARK), 0
        while at >= 0:
            end = data.find(b"\n", at + 1)
            if end < 0:
                self._rest = data[at:] if len(data) - at <= MAX_HEADER + 1 else b""
                return found
            header = _header(data, at + 1, end)
            if header:
                found.append(header)
            done = end
            at = data.find(b"\n" + MARK, end)
        self._rest = data[max(done, len(data) - len(MARK)) :]
        return found


def _header(data: bytes, start: int, end: int) -> Header | None:
    if end - start > MAX_HEADER:
        return None
    return parse_header(data[start:end].decode("utf-8", errors="replace"))


def _next_mark(data: bytes, start: int) -> int:
    if start == 0 and data.startswith(MARK):
        return 0
    at = data.find(b"\n" + MARK, start)
    return at + 1 if at >= 0 else -1
