"""Read AMDGCN as LLVM writes it: instructions, the source lines that ``.loc`` ties them to, and the kernel's resources.

Nothing here fails on a text: what is not understood is passed over.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.dumps.place import Place, Stack
from pipelines.trace import Diagnostic, Resources

MAX_INSTRUCTIONS = 1_000_000
MAX_LINE = 65_536
MAX_ERRORS = 1_000

ASSEMBLER = "triton-amdgpu-assembler"

_MAX_FILES = 10_000
_MAX_INLINED = 16

_FILE = re.compile(r"\s*\.file\s+(\d{1,9})\s+\"([^\"]*)\"(?:\s+\"([^\"]*)\")?")
_LOC = re.compile(r"\s*\.loc\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})")
_INLINED_AT = re.compile(r"@\[ ([^\[\]:]{1,500}):(\d{1,9})(?::(\d{1,9}))?")
_INSTRUCTION = re.compile(r"\s*([a-z]\w*)(?:\s|$)")
_METADATA = (".amdgpu_metadata", ".end_amdgpu_metadata")
# Six columns at most, since deeper ones belong to the kernel's arguments.
_COUNT = re.compile(r" {0,4}(?:- )?\.(\w{1,64}): +(\d{1,9})\s*$")
_ERROR = re.compile(
    rf"^{ASSEMBLER}:([0-9]{{1,9}}):([0-9]{{1,9}}): (?:fatal )?error: ([^\n]{{0,4000}})[^\n]*\n?([^\n]{{0,4000}})",
    re.MULTILINE,
)
_SAID = re.compile(r"^error: ([^\n]{1,4000})", re.MULTILINE)
_OCCUPANCY = re.compile(r"^; Occupancy: (\d{1,4})$", re.MULTILINE)


@dataclass(frozen=True)
class Instruction:
    """One instruction; ``row`` is its line of the text, from 1. ``stack`` is empty where no line is known."""

    row: int
    opcode: str
    stack: Stack


def parse(text: str) -> list[Instruction]:
    """Return the instructions in text order, at most ``MAX_INSTRUCTIONS``."""
    rows = text.split("\n")
    places = _Places(rows)
    out: list[Instruction] = []
    for row, line in _code(rows):
        if line.lstrip().startswith("."):
            places.enter(line)
            continue
        found = _INSTRUCTION.match(line.partition(";")[0])
        if found:
            out.append(Instruction(row, found[1], places.stack))
            if len(out) == MAX_INSTRUCTIONS:
                break
    return out


def count_instructions(text: str) -> int:
    """Return how many instructions a text has."""
    return len(parse(text))


def parse_resources(text: str, shared: int | None = None) -> Resources | None:
    """Read what the code object's metadata says of its kernel; ``shared`` is the LDS allocated at launch, in bytes.

    Occupancy is LLVM's own, which knows registers and the LDS of the text, not that of the launch. Returns None where
    the text has no metadata.
    """
    counts = _counts(text)
    if "vgpr_count" not in counts:
        return None
    occupancy = _OCCUPANCY.search(text)
    return Resources(
        registers=counts["vgpr_count"],
        agprs=counts.get("agpr_count"),
        sgprs=counts.get("sgpr_count"),
        vgpr_spills=counts.get("vgpr_spill_count"),
        sgpr_spills=counts.get("sgpr_spill_count"),
        stack=counts.get("private_segment_fixed_size"),
        shared=counts.get("group_segment_fixed_size", 0) + (shared or 0),
        occupancy=int(occupancy[1]) if occupancy else None,
        instructions=count_instructions(text),
    )


def parse_errors(stderr: str) -> list[Diagnostic]:
    """Return the assembler's first ``MAX_ERRORS`` errors, at their lines of the text, with the code there."""
    return [
        Diagnostic(
            severity="error",
            message=f"{found[3]}: {found[4].strip()}",
            file="kernel.amdgcn",
            line=int(found[1]),
            column=int(found[2]),
            address="amdgcn",
        )
        for found in itertools.islice(_ERROR.finditer(stderr), MAX_ERRORS)
    ]


def parse_complaints(stderr: str) -> list[Diagnostic]:
    """Return the errors that LLVM's back end says without a place, and after which it goes on all the same."""
    said = dict.fromkeys(found[1].strip() for found in itertools.islice(_SAID.finditer(stderr), MAX_ERRORS))
    return [
        Diagnostic(
            severity="error",
            message=f"{words}; LLVM went on, and the code lacks what it could not make",
            address="amdgcn",
        )
        for words in said
    ]


def _code(rows: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines outside the metadata, which is YAML."""
    inside = False
    for row, whole in enumerate(rows, 1):
        line = whole[:MAX_LINE]
        word = line.strip() if "amdgpu_metadata" in line else ""
        if word in _METADATA:
            inside = word == _METADATA[0]
        elif not inside:
            yield row, line


def _counts(text: str) -> dict[str, int]:
    """Return the numbers of the first kernel in the metadata."""
    _, found, rest = text.partition(f"\t{_METADATA[0]}\n")
    counts: dict[str, int] = {}
    for line in rest.partition(f"\t{_METADATA[1]}")[0].split("\n") if found else ():
        count = _COUNT.match(line[:MAX_LINE])
        if count:
            counts.setdefault(count[1], int(count[2]))
    return counts


class _Places:
    """The table of files, and the place that the last ``.loc`` named, with those that it is inlined at.

    LLVM tells of the latter in a comment, by the file's last name only, which the table makes whole where it is the
    name of one file.
    """

    def __init__(self, rows: list[str]) -> None:
        self.stack: Stack = ()
        self._files: dict[str, str] = {}
        self._whole: dict[str, str] = {}
        for row in rows:
            found = _FILE.match(row[:MAX_LINE]) if ".file" in row[:MAX_LINE] else None
            if found and len(self._files) < _MAX_FILES:
                self._add(*found.groups())

    def _add(self, number: str, first: str, second: str | None) -> None:
        name = first if second is None else second
        path = name if second is None or first in ("", ".") else f"{first}/{name}"
        self._files[number] = path
        last = name.rpartition("/")[2]
        self._whole[last] = path if self._whole.get(last, path) == path else last

    def enter(self, line: str) -> None:
        """Take a directive."""
        found = _LOC.match(line)
        if not found:
            return
        comment = line[found.end() :].partition(";")[2]
        places = [Place(self._files.get(found[1], ""), int(found[2]), int(found[3]))]
        for at in _INLINED_AT.finditer(comment):
            if len(places) == _MAX_INLINED:
                break
            places.append(Place(self._whole.get(at[1], at[1]), int(at[2]), int(at[3] or 0)))
        self.stack = tuple(places)
