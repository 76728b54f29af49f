"""Read what ``nvdisasm -c -gi -hex`` prints: functions, labels, instructions and the source lines they come from.

Nothing here fails on a text: what is not understood is passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import AnyStr

from pipelines.dumps.place import Place, Stack

MAX_INSTRUCTIONS = 1_000_000
MAX_LINE = 4_096

_MAX_INLINED = 64
# Of an instruction, since Volta.
_BYTES_EACH = 16

_SECTION = re.compile(r"\s*\.section\s+(\.text\.)?([^\s,\"]*)")
_LABEL = re.compile(r"([\w$.]+):\s*$")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{1,16})\*/\s+(?:@(!?\w+)\s+)?([A-Z]\w*(?:\.\w+)*)([^;]*);")
_ENCODING = re.compile(r"/\* 0x([0-9a-f]{16}) \*/\s*$")
_SOURCE = re.compile(r"\s*//## File \"([^\"]*)\", line (\d{1,9})( inlined at \")?")

_ENCODING_LINE = r"\n[ \t]*/\* 0x[0-9a-f]{16} \*/(?=\n|\Z)"
_ENCODING_TAIL = r"(?<=;)[ \t]*/\* 0x[0-9a-f]{16} \*/(?=\n|\Z)"
_STR = tuple(re.compile(pattern) for pattern in (_ENCODING_LINE, _ENCODING_TAIL))
_BYTES = tuple(re.compile(pattern.encode()) for pattern in (_ENCODING_LINE, _ENCODING_TAIL))


@dataclass(frozen=True)
class Instruction:
    """One instruction; ``row`` is its line in the text, from 1, ``offset`` in bytes from the function's start.

    ``predicate`` is ``P0`` or ``!P0`` without the at sign, ``encoding`` the two 64-bit words, low word first, where the
    text has them. ``stack`` is empty where no line is known.
    """

    row: int
    offset: int
    predicate: str | None
    opcode: str
    operands: str
    stack: Stack
    encoding: tuple[int, ...] = ()


@dataclass
class Function:
    """The code of one section; ``labels`` give byte offsets."""

    name: str
    labels: dict[str, int] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Count the instructions without the NOPs that pad the end."""
        count = len(self.instructions)
        while count and self.instructions[count - 1].opcode == "NOP":
            count -= 1
        return count


def strip_encodings(text: AnyStr) -> AnyStr:
    """Return the text as nvdisasm prints it without ``-hex``."""
    line, tail = _STR if isinstance(text, str) else _BYTES
    empty = text[:0]
    return tail.sub(empty, line.sub(empty, text))


def parse(text: str) -> list[Function]:
    """Return the functions in text order, at most ``MAX_INSTRUCTIONS`` instructions in all."""
    reader = _Reader()
    for row, line in enumerate(text.split("\n"), 1):
        if len(line) <= MAX_LINE:
            reader.read(row, line)
        if reader.count >= MAX_INSTRUCTIONS:
            break
    reader.close()
    return reader.functions


def count_instructions(text: str) -> int:
    """Return how many instructions all functions have, padding left out."""
    return sum(function.length for function in parse(text))


class _Reader:
    def __init__(self) -> None:
        self.functions: list[Function] = []
        self.count = 0
        self._function: Function | None = None
        self._labels: list[str] = []
        self._stack: list[Place] = []
        self._inlined = False

    def read(self, row: int, line: str) -> None:
        """Take the next line."""
        source = _SOURCE.match(line)
        if source:
            self._source(source)
            return
        section = _SECTION.match(line)
        if section:
            self.close()
            self._function = Function(section[2]) if section[1] else None
            if self._function:
                self.functions.append(self._function)
        elif self._function:
            self._code(self._function, row, line)

    def _source(self, source: re.Match[str]) -> None:
        """Follow a chain: each line but the last names the place it is inlined at, which the next line describes."""
        if not self._inlined:
            self._stack = []
        if len(self._stack) < _MAX_INLINED:
            self._stack.append(Place(source[1], int(source[2])))
        self._inlined = source[3] is not None

    def _code(self, function: Function, row: int, line: str) -> None:
        encoding = _ENCODING.search(line, max(0, len(line) - 40))
        instruction = _INSTRUCTION.match(line)
        if instruction:
            offset = int(instruction[1], 16)
            words = (int(encoding[1], 16),) if encoding else ()
            fields = instruction[2], instruction[3], instruction[4].strip()
            function.labels.update(dict.fromkeys(self._labels, offset))
            function.instructions.append(Instruction(row, offset, *fields, tuple(self._stack), words))
            self._labels, self._inlined = [], False
            self.count += 1
        elif encoding and function.instructions:
            last = function.instructions[-1]
            if len(last.encoding) == 1:
                function.instructions[-1] = replace(last, encoding=(*last.encoding, int(encoding[1], 16)))
        else:
            label = _LABEL.match(line)
            if label and not label[1].startswith(".text."):
                self._labels.append(label[1])

    def close(self) -> None:
        """End a function: labels behind its last instruction stand at its end."""
        function = self._function
        if function and function.instructions:
            end = function.instructions[-1].offset + _BYTES_EACH
            function.labels.update(dict.fromkeys(self._labels, end))
        self._labels, self._stack, self._inlined = [], [], False
