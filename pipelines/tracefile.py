r"""The ``.loupe`` file: a manifest, a table, and the texts, each compressed with the text before it as prefix.

Layout, little-endian::

    magic     8 bytes   b"LOUPE\x01\r\n"
    lengths   2 x u32   bytes of the manifest frame, number of table rows
    manifest  a zstd frame of the canonical JSON
    table     rows of (digest 32 bytes, offset u64, stored u32, size u32, base i32)
    frames    one zstd frame a row, at its offset from the start of the file

A row's base is the row whose text is its prefix, or -1.

Reading a text decodes at most ``KEY_INTERVAL`` frames. Everything is bounded and verified, since files are uploaded.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping
from pathlib import Path

import zstandard

from pipelines.trace import Manifest, TraceError, digest

MAGIC = b"LOUPE\x01\r\n"
SUFFIX = ".loupe"
KEY_INTERVAL = 16
KEY_BYTES = 16 << 20
LEVEL = 9

MAX_MANIFEST = 64 << 20
MAX_TEXT = 256 << 20
MAX_TOTAL = 4 << 30

_LENGTHS = struct.Struct("<II")
_ROW = struct.Struct("<32sQIIi")


def write(manifest: Manifest, blobs: Mapping[str, bytes], *, level: int = LEVEL) -> bytes:
    """Return the file for a manifest and its blobs by digest; zstd's ``level`` trades its size for time.

    Raises:
        TraceError: a blob that the manifest names is missing.
    """
    frames: list[bytes] = []
    rows: list[tuple[bytes, int, int, int]] = []
    since_key = size_since_key = 0
    before = b""
    for name in manifest.digests():
        blob = blobs.get(name)
        if blob is None:
            raise TraceError(f"the manifest names {name}, which is not there")
        key = not rows or since_key >= KEY_INTERVAL or size_since_key + len(blob) > KEY_BYTES
        frames.append(_compress(blob, b"" if key else before, level))
        rows.append((bytes.fromhex(name), len(frames[-1]), len(blob), -1 if key else len(rows) - 1))
        since_key, size_since_key = (1, len(blob)) if key else (since_key + 1, size_since_key + len(blob))
        before = blob
    head = _compress(manifest.canonical(), b"", level)
    offset = len(MAGIC) + _LENGTHS.size + len(head) + _ROW.size * len(rows)
    table = bytearray()
    for name_bytes, stored, size, base in rows:
        table += _ROW.pack(name_bytes, offset, stored, size, base)
        offset += stored
    return b"".join([MAGIC, _LENGTHS.pack(len(head), len(rows)), head, bytes(table), *frames])


class TraceFile:
    """An open trace: its manifest at once, its texts as they are asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        start = len(MAGIC) + _LENGTHS.size
        if data[: len(MAGIC)] != MAGIC or len(data) < start:
            raise TraceError("this is not a .loupe file")
        head, count = _LENGTHS.unpack_from(data, len(MAGIC))
        if start + head + count * _ROW.size > len(data):
            raise TraceError("the .loupe file is cut short")
        self._canonical = _decompress(data[start : start + head], b"", MAX_MANIFEST)
        self._rows: dict[str, tuple[int, int, int, int]] = {}
        self._order: list[str] = []
        for row in _ROW.iter_unpack(data[start + head : start + head + count * _ROW.size]):
            name = row[0].hex()
            self._rows[name] = row[1:]
            self._order.append(name)

    @classmethod
    def open(cls, path: Path) -> TraceFile:
        """Read a file; raise TraceError where it is no trace."""
        return cls(path.read_bytes())

    @functools.cached_property
    def manifest(self) -> Manifest:
        """The manifest, parsed and checked."""
        return Manifest.parse(self._canonical)

    @property
    def content(self) -> str:
        """The hash of the manifest as stored."""
        return digest(self._canonical)

    def blob(self, name: str) -> bytes:
        """Return a blob by its digest; raise TraceError where it is missing or damaged."""
        if name not in self._rows:
            raise TraceError(f"the trace holds no text {name}")
        chain: list[str] = []
        at = name
        while True:
            chain.append(at)
            base = self._rows[at][3]
            if base < 0:
                break
            if base >= len(self._order) or len(chain) > KEY_INTERVAL:
                raise TraceError("the .loupe file's table is damaged")
            at = self._order[base]
        blob = b""
        for index, link in enumerate(reversed(chain)):
            offset, stored, size, _ = self._rows[link]
            blob = _decompress(self._data[offset : offset + stored], blob if index else b"", size)
        if digest(blob) != name:
            raise TraceError(f"text {name} is damaged")
        return blob

    def text(self, name: str) -> str:
        """Return a text by its digest; bytes that are not UTF-8 become U+FFFD."""
        return self.blob(name).decode("utf-8", errors="replace")

    def verify(self) -> None:
        """Raise TraceError unless every text is there, undamaged, within bounds, and the manifest is canonical."""
        if self.manifest.canonical() != self._canonical:
            raise TraceError("the manifest is not in canonical form")
        if sum(row[2] for row in self._rows.values()) > MAX_TOTAL:
            raise TraceError(f"the trace is larger than {MAX_TOTAL >> 30} GB when decompressed")
        for name in self.manifest.digests():
            self.blob(name)


def _compress(data: bytes, prefix: bytes, level: int) -> bytes:
    size = max(len(data) + len(prefix), 1 << 10)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, window_log=min(27, max(10, size.bit_length())), write_content_size=1, write_dict_id=0
    )
    base = zstandard.ZstdCompressionDict(prefix, zstandard.DICT_TYPE_RAWCONTENT) if prefix else None
    return zstandard.ZstdCompressor(dict_data=base, compression_params=parameters).compress(data)


def _decompress(frame: bytes, prefix: bytes, size: int) -> bytes:
    if size > MAX_TEXT:
        raise TraceError(f"a text is larger than {MAX_TEXT >> 20} MB")
    base = zstandard.ZstdCompressionDict(prefix, zstandard.DICT_TYPE_RAWCONTENT) if prefix else None
    decompressor = zstandard.ZstdDecompressor(dict_data=base, max_window_size=1 << 28)
    try:
        declared = zstandard.frame_content_size(frame)
        if declared < 0 or declared > size:
            raise TraceError("a frame's size is not what the table says")
        return decompressor.decompress(frame, max_output_size=size)
    except zstandard.ZstdError as error:
        raise TraceError(f"a frame is damaged: {error}") from None
