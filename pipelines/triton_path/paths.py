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

_COMPILE_DIRECTORY = re.compile(rb"\.b8 \d{1,3}[ \t]*// DW_AT_comp_dir\n(?:\.b8 \d{1,3}\n)*")
_BYTE = re.compile(rb"(?<=\.b8 )\d{1,3}")


class Paths:
    """Replaces the roots that are given, a longer one before what it lies in."""

    def __init__(self, roots: Sequence[tuple[str, str]]) -> None:
        ordered = sorted(roots, key=lambda root: -len(root[0]))
        self._roots = [(path.rstrip("/"), shown) for path, shown in ordered]
        self._bytes = [
            (form, shown.encode())
            for path, shown in self._roots
            for form in _forms(path.encode(errors="surrogateescape"))
        ]

    def text(self, data: bytes) -> bytes:
        """Return a text of a compiler's with its paths replaced; the time is linear in its size for each root."""
        for path, shown in self._bytes:
            if path not in data:
                continue
            data = data.replace(_padded(path, shown) + b"/", shown + b"/" if shown else b"")
            data = data.replace(path + b"/", shown + b"/" if shown else b"")
            data = data.replace(b'"' + path + b'"', b'"' + shown + b'"')
        return _COMPILE_DIRECTORY.sub(self._debug_bytes, data) if b"DW_AT_comp_dir" in data else data

    def disassembly(self, data: bytes) -> bytes:
        """Return a text made from a ``binary`` whose paths were replaced."""
        for path, shown in self._bytes:
            padded = _padded(path, shown)
            data = data.replace(b'"' + padded + b"/", b'"' + (shown + b"/" if shown else b""))
        return data

    def binary(self, data: bytes) -> bytes:
        """Return a binary of the same length with its paths replaced."""
        for path, shown in self._bytes:
            if path in data:
                data = re.sub(re.escape(path) + rb"(?![^/\0\"])", _padded(path, shown), data)
        return data

    def string(self, text: str) -> str:
        """Return a message or a name with its paths replaced."""
        for path, shown in self._roots:
            if path in text:
                text = text.replace(path + "/", shown + "/" if shown else "").replace(path, shown or ".")
        return text

    def json(self, value: JsonValue) -> JsonValue:
        """Return a value with the paths in all its texts replaced."""
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {key: self.json(item) for key, item in value.items()}
        return value

    def _debug_bytes(self, match: re.Match[bytes]) -> bytes:
        """Replace the folder that PTX spells as one number a byte."""
        spelled = match[0]
        written = bytes(min(int(number), 255) for number in _BYTE.findall(spelled))
        numbers = iter(self.binary(written))
        return _BYTE.sub(lambda _: str(next(numbers)).encode(), spelled)


def _forms(path: bytes) -> Iterable[bytes]:
    """Yield a path as it is, as MLIR and LLVM IR print it, and as assembly does."""
    yield path
    if not path.isascii():
        yield b"".join(bytes([c]) if c < 128 else b"\\%02X" % c for c in path)
        yield b"".join(bytes([c]) if c < 128 else b"\\%03o" % c for c in path)


def _padded(path: bytes, shown: bytes) -> bytes:
    """Return what stands for a folder, as long as its path, or as much of it as fits."""
    if shown:
        return shown.ljust(len(path), b"/")[: len(path)]
    return (b"./" * len(path))[: len(path)]
