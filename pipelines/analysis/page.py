"""A text as an array: its lines, and where the punctuation stands that starts names, strings and locations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipelines.analysis.spans import Bytes, Flags, Index, padded, run_end, table

NEWLINE = 10
_QUOTE = ord('"')
_BACKSLASH = ord("\\")
_BLANK = table(b" \t")


@dataclass(frozen=True)
class Page:
    """``starts`` and ``ends`` (exclusive) are the lines that a split at line feeds gives."""

    size: int
    buffer: Bytes
    starts: Index
    ends: Index

    @classmethod
    def of(cls, text: bytes) -> Page:
        """Read a text."""
        buffer = padded(text)
        ends = np.flatnonzero(buffer[: len(text) + 1] == NEWLINE)
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))
        return cls(len(text), buffer, starts, ends)

    @cached_property
    def first(self) -> Index:
        """Return where each line's indentation ends."""
        return run_end(self.buffer, self.starts, _BLANK)

    def marks(self, sigils: bytes, *, strings: bool) -> Marks:
        """Find all bytes of ``sigils``; with ``strings``, leave out those inside double quotes of one line."""
        wanted = table(sigils + b"\n" + (b'"' if strings else b""))
        at = np.flatnonzero(wanted[self.buffer[: self.size + 1]])
        byte = self.buffer[at]
        newline = byte == NEWLINE
        line = np.cumsum(newline) - newline
        kept = ~newline
        if strings:
            kept &= ~self._quoted(at, byte, newline, line)
        return Marks(at[kept], byte[kept], line[kept])

    def _quoted(self, at: Index, byte: Bytes, newline: Flags, line: Index) -> Flags:
        """Say which marks are quotes or stand between two; a quote left open ends with its line."""
        quote = byte == _QUOTE
        where = at[quote]
        escaped = (self.buffer[where - 1] == _BACKSLASH) & (self.buffer[where - 2] != _BACKSLASH)
        quote[np.flatnonzero(quote)[escaped & (where > 1)]] = False
        count = np.cumsum(quote)
        before_line = np.concatenate((np.zeros(1, np.int64), count[newline]))[line]
        inner: Flags = ((count - before_line) % 2 == 1) | (byte == _QUOTE)
        return inner


@dataclass(frozen=True)
class Marks:
    """Punctuation in text order; ``line`` counts from 0."""

    at: Index
    byte: Bytes
    line: Index

    def only(self, characters: bytes) -> Marks:
        """Return those that are one of ``characters``."""
        return self.where(table(characters)[self.byte])

    def where(self, kept: Flags) -> Marks:
        """Return a selection."""
        return Marks(self.at[kept], self.byte[kept], self.line[kept])
