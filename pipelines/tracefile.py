r"""The ``.loupe`` file: a manifest, a table, and the texts, each compressed with the text before it as prefix.

Layout, little-endian::

    magic     8 bytes   b"LOUPE\x01\r\n"
    lengths   2 x u32   bytes of the manifest frame, number of table rows
    manifest  a zstd frame of the canonical JSON
    table     rows of (digest 32 bytes, offset u64, stored u32, size u32, base i32)
    frames    one zstd frame a row, at its offset from the start of the file

The rows are the manifest's texts in its order, and the frames follow in theirs without a gap. A row's base is the row
before it, whose text is its prefix, or -1 for a key frame.

Reading a text decodes at most ``KEY_INTERVAL`` frames or ``KEY_BYTES``. Everything is bounded and verified, since files
are uploaded: nothing is decoded before the table is known to be one that ``write`` makes.
"""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

import zstandard

from pipelines.trace import Manifest, TraceError, canonical_json, digest

MAGIC = b"LOUPE\x01\r\n"
SUFFIX = ".loupe"
LEVEL = 9

# Part of the format: a reader refuses longer chains.
KEY_INTERVAL = 16
KEY_BYTES = 16 << 20

MAX_MANIFEST = 64 << 20
MAX_TEXT = 256 << 20
MAX_TOTAL = 4 << 30

_LENGTHS = struct.Struct("<II")
_ROW = struct.Struct("<32sQIIi")


def write(manifest: Manifest, blobs: Mapping[str, bytes], *, level: int = LEVEL) -> bytes:
    """Return the file for a manifest and its blobs by digest; zstd's ``level`` trades its size for time.

    Raises:
        TraceError: the manifest contradicts itself, or a blob that it names is missing or too large to be read back.
    """
    manifest.check()
    frames = Frames(level)
    for name in manifest.digests():
        blob = blobs.get(name)
        if blob is None:
            raise TraceError(f"the manifest names {name}, which is not there")
        frames.add(name, blob)
    return frames.finish(manifest.canonical())


class Frames:
    """Writes a file text by text, so that no more than two are in memory uncompressed."""

    def __init__(self, level: int = LEVEL) -> None:
        self._level = level
        self._frames: list[bytes] = []
        self._rows: list[tuple[bytes, int, int, int]] = []
        self._names: set[str] = set()
        self._since_key = self._size_since_key = self._total = 0
        self._before = b""

    def add(self, name: str, blob: bytes) -> None:
        """Add a text by its digest, unless it is there; raise TraceError where it could not be read back."""
        if name in self._names:
            return
        key = not self._rows or self._since_key >= KEY_INTERVAL or self._size_since_key + len(blob) > KEY_BYTES
        self._total += len(blob)
        _check_size(len(blob))
        _check_total(self._total)
        self._names.add(name)
        self._frames.append(_compress(blob, b"" if key else self._before, self._level))
        base = -1 if key else len(self._rows) - 1
        self._rows.append((bytes.fromhex(name), len(self._frames[-1]), len(blob), base))
        self._since_key = 1 if key else self._since_key + 1
        self._size_since_key = len(blob) if key else self._size_since_key + len(blob)
        self._before = blob

    def finish(self, head: bytes) -> bytes:
        """Return the file whose head names the texts in the order in which they were added."""
        if len(head) > MAX_MANIFEST:
            raise TraceError(f"the manifest is larger than {MAX_MANIFEST >> 20} MB")
        first = _compress(head, b"", self._level)
        offset = len(MAGIC) + _LENGTHS.size + len(first) + _ROW.size * len(self._rows)
        table = bytearray()
        for name_bytes, stored, size, base in self._rows:
            table += _ROW.pack(name_bytes, offset, stored, size, base)
            offset += stored
        return b"".join([MAGIC, _LENGTHS.pack(len(first), len(self._rows)), first, bytes(table), *self._frames])


class _Row(NamedTuple):
    name: str
    offset: int
    stored: int
    size: int
    base: int


class FrameFile:
    """An open file of texts: its head at once, its texts as they are asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        start = len(MAGIC) + _LENGTHS.size
        if data[: len(MAGIC)] != MAGIC or len(data) < start:
            raise TraceError("this is not a .loupe file")
        head, count = _LENGTHS.unpack_from(data, len(MAGIC))
        frames = start + head + count * _ROW.size
        if frames > len(data):
            raise TraceError("the .loupe file is cut short")
        table = memoryview(data)[start + head : frames]
        self._rows = [_Row(row[0].hex(), *row[1:]) for row in _ROW.iter_unpack(table)]
        self._numbers = {row.name: number for number, row in enumerate(self._rows)}
        _check_rows(self._rows, frames, len(data))
        if len(self._numbers) != count:
            raise TraceError("the .loupe file's table names a text twice")
        self._canonical = _decompress(data[start : start + head], b"", None)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read a file; raise TraceError where it is none of this kind."""
        return cls(path.read_bytes())

    def digests(self) -> tuple[str, ...]:
        """Return the texts that the head names, in its order; raise TraceError where it cannot be read."""
        raise NotImplementedError

    @property
    def content(self) -> str:
        """The hash of the head as stored."""
        return digest(self._canonical)

    @property
    def data(self) -> bytes:
        """The file itself."""
        return self._data

    @property
    def head_size(self) -> int:
        """Bytes of the head's JSON, known before it is parsed."""
        return len(self._canonical)

    @property
    def text_size(self) -> int:
        """Bytes of all texts, decompressed."""
        return sum(row.size for row in self._rows)

    def blob(self, name: str) -> bytes:
        """Return a blob by its digest; raise TraceError where it is missing or damaged."""
        number = self._numbers.get(name)
        if number is None:
            raise TraceError(f"the trace holds no text {name}")
        first = number
        while self._rows[first].base >= 0:
            first -= 1
        blob = b""
        for row in self._rows[first : number + 1]:
            blob = self._decode(row, blob)
        return _intact(name, blob)

    def text(self, name: str) -> str:
        """Return a text by its digest; bytes that are not UTF-8 become U+FFFD."""
        return self.blob(name).decode("utf-8", errors="replace")

    def verify(self) -> None:
        """Raise TraceError unless every text is there and undamaged, no other is, and the head is canonical.

        Each frame is decoded once.
        """
        # The JSON itself counts: a manifest of an earlier version lacks fields that the model would add.
        named = self.digests()
        if canonical_json(json.loads(self._canonical)) != self._canonical:
            raise TraceError("the manifest is not in canonical form")
        if named != tuple(row.name for row in self._rows):
            raise TraceError("the .loupe file's texts are not those that its manifest names")
        blob = b""
        for row in self._rows:
            blob = _intact(row.name, self._decode(row, blob))

    def _decode(self, row: _Row, before: bytes) -> bytes:
        frame = self._data[row.offset : row.offset + row.stored]
        return _decompress(frame, before if row.base >= 0 else b"", row.size)


class TraceFile(FrameFile):
    """An open trace, whose head is its manifest."""

    @functools.cached_property
    def manifest(self) -> Manifest:
        """The manifest, parsed and checked."""
        return Manifest.parse(self._canonical)

    def digests(self) -> tuple[str, ...]:
        """Return every text and artifact that the manifest names."""
        return self.manifest.digests()


def _check_rows(rows: list[_Row], start: int, end: int) -> None:
    """Raise TraceError unless the frames fill the file and no chain is longer than ``write`` makes it."""
    links = total = 0
    for number, row in enumerate(rows):
        _check_size(row.size)
        if row.offset != start:
            raise TraceError("the .loupe file's table is damaged: a frame is not where the one before it ends")
        start += row.stored
        if row.base == -1:
            links, total = 1, row.size
            continue
        links, total = links + 1, total + row.size
        if row.base != number - 1:
            raise TraceError("the .loupe file's table is damaged: a text's prefix is not the text before it")
        if links > KEY_INTERVAL or total > KEY_BYTES:
            raise TraceError("the .loupe file's table is damaged: too many texts without a key frame")
    if start != end:
        raise TraceError("the .loupe file is cut short, or has bytes that belong to no text")
    _check_total(sum(row.size for row in rows))


def _check_size(size: int) -> None:
    if size > MAX_TEXT:
        raise TraceError(f"a text is larger than {MAX_TEXT >> 20} MB")


def _check_total(size: int) -> None:
    if size > MAX_TOTAL:
        raise TraceError(f"the trace is larger than {MAX_TOTAL >> 30} GB when decompressed")


def _intact(name: str, blob: bytes) -> bytes:
    if digest(blob) != name:
        raise TraceError(f"text {name} is damaged")
    return blob


def _compress(data: bytes, prefix: bytes, level: int) -> bytes:
    size = max(len(data) + len(prefix), 1 << 10)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, window_log=min(27, max(10, size.bit_length())), write_content_size=1, write_dict_id=0
    )
    base = zstandard.ZstdCompressionDict(prefix, zstandard.DICT_TYPE_RAWCONTENT) if prefix else None
    return zstandard.ZstdCompressor(dict_data=base, compression_params=parameters).compress(data)


def _decompress(frame: bytes, prefix: bytes, size: int | None) -> bytes:
    """Return exactly ``size`` bytes, or for None as many as the frame says, up to ``MAX_MANIFEST``."""
    base = zstandard.ZstdCompressionDict(prefix, zstandard.DICT_TYPE_RAWCONTENT) if prefix else None
    decompressor = zstandard.ZstdDecompressor(dict_data=base, max_window_size=1 << 28)
    try:
        declared = zstandard.frame_content_size(frame)
        if declared < 0 or declared > MAX_MANIFEST if size is None else declared != size:
            raise TraceError("a frame's size is not what the table says")
        return decompressor.decompress(frame, max_output_size=declared, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise TraceError(f"a frame is damaged: {error}") from None
