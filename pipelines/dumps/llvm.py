"""What LLVM prints with ``-print-after-all``, cut into records while it is being written.

The new pass manager, the legacy one of code generation, and machine code each have a header of their own::

    ; *** IR Dump After LICMPass on loop %5 in function kernel ***
    *** IR Dump After Early CSE (early-cse) *** (function: kernel)
    # *** IR Dump After Machine code sinking (machine-sink) ***:
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipelines.trace import MAX_HEADER

# A record whose IR is longer is kept without it.
MAX_TEXT = 64 << 20

Scope = Literal["module", "scc", "function", "loop", "blocks", "machine-function", ""]

_MARK = b"*** IR Dump "
_STARTS = (b"; ", b"# ")
# What the new pass manager logs between the dumps, at the start of a line.
_LOG = (
    b"Running pass: ",
    b"Running analysis: ",
    b"Skipping pass: ",
    b"Invalidating analysis: ",
    b"Clearing all analysis results for: ",
)
_TAILS = (" (invalidated)", " omitted because no change", " filtered out", " ignored")


@dataclass(frozen=True)
class Header:
    """What a dump's header says.

    ``name`` is the pass's class, or in code generation its short name; ``argument`` is the pass as LLVM prints it.
    ``ran_on`` is what the pass ran on, empty where the header does not tell; ``function`` is named by some headers.
    """

    when: Literal["before", "after"]
    name: str
    argument: str
    ran_on: Scope = ""
    function: str | None = None


@dataclass(frozen=True)
class Record:
    """A header and what followed it: IR as UTF-8 bytes without blank lines around, None where it was too long."""

    header: Header
    text: bytes | None

    @property
    def holds(self) -> Scope:
        """What the text is, whatever the pass ran on; empty where LLVM printed none."""
        text = self.text or b""
        if text.startswith(b"# Machine code"):
            return "machine-function"
        if text.startswith((b"; ModuleID", b"source_filename", b"target ")):
            return "module"
        if text.startswith((b"; Preheader:", b"; Loop:")):
            return "loop"
        if text.startswith((b"define ", b"declare ", b"; Function Attrs")):
            return "function"
        return "blocks" if text else ""


def parse_header(line: str) -> Header | None:
    """Read one header line, or return None where it is none; the time is linear in its length."""
    mark = _MARK.decode()
    if len(line) > MAX_HEADER:
        return None
    kind = line[:2] if line[:2] in ("; ", "# ") else ""
    if not line.startswith(mark, len(kind)):
        return None
    moment, _, rest = line[len(kind) + len(mark) :].rstrip().partition(" ")
    body, stars, tail = rest.rpartition(" ***")
    if moment not in ("Before", "After") or not stars or not body.strip():
        return None
    when: Literal["before", "after"] = "before" if moment == "Before" else "after"
    if kind == "; ":
        return _new_manager(when, body)
    name, argument = _legacy_name(body)
    if kind == "# ":
        return Header(when, name, argument, "machine-function")
    return Header(when, name, argument, *_legacy_scope(tail))


def _new_manager(when: Literal["before", "after"], body: str) -> Header:
    """Read ``LICMPass on loop %5 in function kernel``."""
    for tail in _TAILS:
        body = body.removesuffix(tail)
    argument, _, unit = body.partition(" on ")
    name = argument.removeprefix("(anonymous namespace)::") or argument
    if unit == "[module]":
        return Header(when, name, argument, "module")
    if unit.startswith("(") and unit.endswith(")"):
        return Header(when, name, argument, "scc", unit[1:-1] or None)
    if unit.startswith("loop "):
        return Header(when, name, argument, "loop", unit.rpartition(" in function ")[2] or None)
    return Header(when, name, argument, "function" if unit else "", unit or None)


def _legacy_name(body: str) -> tuple[str, str]:
    """Read ``Early CSE (early-cse)``: the short name is in the last pair of brackets."""
    at = body.rfind(" (")
    short = body[at + 2 : -1] if at >= 0 and body.endswith(")") else ""
    return short or body, body


def _legacy_scope(tail: str) -> tuple[Scope, str | None]:
    """Read `` (function: kernel)`` after a header; without it the pass ran on the module or did not say."""
    kind, colon, name = tail.strip().removeprefix("(").removesuffix(")").partition(": ")
    if not colon or kind not in ("function", "loop"):
        return "", None
    return ("function", name) if kind == "function" else ("loop", None)


class RecordReader:
    """Cuts a dump into records, piece by piece; memory is bounded by the longest record."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._searched = 0
        self._header: Header | None = None
        self._too_long = False

    def feed(self, data: bytes) -> list[Record]:
        """Return the records that these bytes complete."""
        self._held += data
        found: list[Record] = []
        while (at := self._next_mark()) is not None:
            end = self._held.find(b"\n", at)
            if end < 0 and len(self._held) - at <= MAX_HEADER:
                self._searched = at
                return found
            end = len(self._held) if end < 0 else end
            header = parse_header(self._held[at:end].decode("utf-8", errors="replace"))
            if header is None:
                self._searched = end
                continue
            found += self._close(at)
            self._header = header
            del self._held[: end + 1 - at]
        if len(self._held) > MAX_TEXT:
            self._too_long = True
            del self._held[:-MAX_HEADER]
            self._searched = 0
        return found

    def finish(self) -> list[Record]:
        """Return the last record; nothing marks its end."""
        return self._close(len(self._held))

    def _next_mark(self) -> int | None:
        """Return where the next header's line starts; what lies before it has no other."""
        while True:
            at = self._held.find(_MARK, self._searched)
            if at < 0:
                self._searched = max(self._searched, len(self._held) - len(_MARK) - len(_STARTS[0]))
                return None
            start = at - 2 if self._held[max(0, at - 2) : at] in _STARTS else at
            if start == 0 or self._held[start - 1] == ord("\n"):
                return start
            self._searched = at + 1

    def _close(self, end: int) -> list[Record]:
        """Take what is held before ``end`` as the open record's text."""
        text = None if self._too_long else _without_log(bytes(self._held[:end]))
        header, self._header, self._too_long = self._header, None, False
        del self._held[:end]
        self._searched = 0
        return [Record(header, text)] if header else []


def _without_log(text: bytes) -> bytes:
    """Drop blank lines around a text, and the pass manager's own words after it."""
    end = len(text)
    while True:
        while end and text[end - 1] == ord("\n"):
            end -= 1
        start = text.rfind(b"\n", 0, end) + 1
        if not text.startswith(_LOG, start, end):
            return text[:end].lstrip(b"\n")
        end = start
