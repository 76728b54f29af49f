"""Read PTX: its instructions, and the source lines that ``.file`` and ``.loc`` tie them to.

Nothing here fails on a text: what is not understood is passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipelines.dumps.place import Place, Stack

MAX_INSTRUCTIONS = 1_000_000
MAX_LINE = 65_536

_MAX_FILES = 10_000
_MAX_INLINED = 16

_FILE = re.compile(r"\s*\.file\s+(\d{1,9})\s+\"([^\"]*)\"")
_LOC = re.compile(r"\s*\.loc\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})")
_INLINED_AT = re.compile(r"inlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})")
_LEAD = re.compile(r"[{}\s]*(?:[\w$%]+:(?!:))?[{}\s]*")
_INSTRUCTION = re.compile(r"(?:@(!?%?[\w$]+)\s+)?([a-z][\w.:]*)(?:\s|$)")


@dataclass(frozen=True)
class Instruction:
    """One instruction; ``row`` is the line of the text, from 1, on which it starts.

    ``predicate`` is ``%p1`` or ``!%p1`` without the at sign; ``opcode`` carries its modifiers. ``stack`` is empty where
    no line is known.
    """

    row: int
    predicate: str | None
    opcode: str
    stack: Stack


def parse(text: str) -> list[Instruction]:
    """Return the instructions in text order, at most ``MAX_INSTRUCTIONS``."""
    rows = text.split("\n")
    places = _Places(rows)
    out: list[Instruction] = []
    unfinished = False
    for row, line in enumerate(rows, 1):
        code = line[:MAX_LINE].partition("//")[0]
        if code.lstrip().startswith("."):
            places.enter(code)
            unfinished = False
            continue
        *finished, rest = code.split(";")
        for statement in finished:
            if not unfinished:
                out += _instruction(row, statement, places.stack)
            unfinished = False
        if not unfinished:
            started = _instruction(row, rest, places.stack)
            out += started
            unfinished = bool(started)
        if len(out) >= MAX_INSTRUCTIONS:
            break
    return out[:MAX_INSTRUCTIONS]


def count_instructions(text: str) -> int:
    """Return how many instructions a text has."""
    return len(parse(text))


def _instruction(row: int, statement: str, stack: Stack) -> list[Instruction]:
    """Return the instruction of a statement, past braces and a label; declarations give none."""
    lead = _LEAD.match(statement)
    found = _INSTRUCTION.match(statement, lead.end() if lead else 0)
    return [Instruction(row, found[1], found[2], stack)] if found else []


class _Places:
    """The table of files, which stands at the end of a text, and the place that the last ``.loc`` named."""

    def __init__(self, rows: list[str]) -> None:
        self.stack: Stack = ()
        self._files: dict[str, str] = {}
        self._stacks: dict[tuple[str, str, str], Stack] = {}
        for row in rows:
            found = _FILE.match(row) if ".file" in row[:MAX_LINE] else None
            if found and len(self._files) < _MAX_FILES:
                self._files[found[1]] = found[2]

    def enter(self, code: str) -> None:
        """Take a directive. ``inlined_at`` names an earlier ``.loc``, whose own chain goes on from there."""
        found = _LOC.match(code)
        if not found:
            return
        key = (found[1], found[2], found[3])
        at = _INLINED_AT.search(code, found.end())
        outer: Stack = ()
        if at:
            parent = (at[1], at[2], at[3])
            outer = self._stacks.get(parent) or (self._place(parent),)
        self.stack = (self._place(key), *outer)[:_MAX_INLINED]
        self._stacks[key] = self.stack

    def _place(self, key: tuple[str, str, str]) -> Place:
        return Place(self._files.get(key[0], ""), int(key[1]), int(key[2]))
