"""Take the folders of somebody's machine out of what their compiler wrote.

A recording says which folders its paths begin with and what stands for each (``pipelines.hook.sources.roots``). In
texts a path becomes what stands for it. In a binary, and in the bytes of a PTX debug section, lengths must stay: there
the folder becomes ``./././`` or what stands for it followed by slashes, which names the same file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

MAX_ROOTS = 256
# How much longer texts may become: what stands for a folder can be longer than its path.
MAX_GROWTH = 64 << 20

_COMPILE_DIRECTORY = re.compile(rb"\.b8 \d{1,3}[ \t]*// DW_AT_comp_dir\n(?:\.b8 \d{1,3}\n)*")
_BYTE = re.compile(rb"(?<=\.b8 )\d{1,3}")
# A root ends where its last name does; the rest of the path is taken along, so that nothing inside it is replaced.
_END = rb"(?![\w@+~-]|\.\w)"
_REST = rb"((?:/[^\s\"'\x00:;,()<>\\]*)?)"

# What ``binary`` puts in, as a disassembler prints it: it may merge slashes.
_DOTS = re.compile(rb'(?<=")(?:\./)+(?:\.?/)*')
_FILLED = re.compile(rb'(?<=")(<[a-z-]+>)/+')


class PathsError(ValueError):
    """Texts that would grow beyond all bounds."""


class Paths:
    """Replaces folders, ``(path, what stands for it)``, a longer one before what it lies in."""

    def __init__(self, roots: Sequence[tuple[str, str]]) -> None:
        self._shown: dict[bytes, bytes] = {}
        for path, shown in sorted(roots, key=lambda root: -len(root[0])):
            for form in _forms(path.rstrip("/").encode(errors="surrogateescape")):
                if form.startswith(b"/") and len(form) > 1:
                    self._shown.setdefault(form, shown.encode())
        alternatives = b"|".join(re.escape(form[1:]) for form in sorted(self._shown, key=len, reverse=True))
        self._pattern = re.compile(rb"(/(?:" + alternatives + rb"))" + _END + _REST) if alternatives else None
        self._grown = 0

    def text(self, data: bytes) -> bytes:
        """Return a text of a compiler's with its paths replaced; the time is linear in its size.

        Raises:
            PathsError: all texts together grow by more than ``MAX_GROWTH``.
        """
        data = self._pattern.sub(self._shorter, data) if self._pattern else data
        return _COMPILE_DIRECTORY.sub(self._debug_bytes, data) if b"DW_AT_comp_dir" in data else data

    def binary(self, data: bytes) -> bytes:
        """Return a binary of the same length with its paths replaced."""
        if self._pattern is None:
            return data
        return self._pattern.sub(lambda match: _padded(match[1], self._shown[match[1]]) + match[2], data)

    def disassembly(self, data: bytes) -> bytes:
        """Return a text made from a ``binary``, with what was put in for length's sake taken out again."""
        return _FILLED.sub(rb"\1/", _DOTS.sub(b"", data)) if self._pattern else data

    def string(self, text: str) -> str:
        """Return a message or a name with its paths replaced."""
        return self.text(text.encode(errors="surrogateescape")).decode(errors="replace")

    def json(self, value: JsonValue) -> JsonValue:
        """Return a value with the paths in all its texts replaced."""
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {key: self.json(item) for key, item in value.items()}
        return value

    def _shorter(self, match: re.Match[bytes]) -> bytes:
        replaced = _joined(self._shown[match[1]], match[2][1:])
        self._grown += max(0, len(replaced) - len(match[0]))
        if self._grown > MAX_GROWTH:
            raise PathsError("its texts name more paths than a compiler writes")
        return replaced

    def _debug_bytes(self, match: re.Match[bytes]) -> bytes:
        """Replace the folder that PTX spells as one number a byte."""
        spelled = match[0]
        written = bytes(min(int(number), 255) for number in _BYTE.findall(spelled))
        numbers = iter(self.binary(written))
        return _BYTE.sub(lambda _: str(next(numbers)).encode(), spelled)


def _joined(shown: bytes, rest: bytes) -> bytes:
    return shown + b"/" + rest if shown and rest else shown or rest


def _forms(path: bytes) -> Iterable[bytes]:
    """Yield a path as it is, as MLIR and LLVM IR print it, and as assembly does."""
    yield path
    if not path.isascii():
        yield b"".join(bytes([c]) if c < 128 else b"\\%02X" % c for c in path)
        yield b"".join(bytes([c]) if c < 128 else b"\\%03o" % c for c in path)


def _padded(path: bytes, shown: bytes) -> bytes:
    """Return what stands for a folder, as long as its path, or as much of it as fits."""
    return shown.ljust(len(path), b"/")[: len(path)] if shown else (b"./" * len(path))[: len(path)]
