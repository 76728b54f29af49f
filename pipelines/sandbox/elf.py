"""The interpreters that executables name, which the kernel opens for execution too."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

_IDENT = b"\x7fELF\x02\x01"  # 64 bits, little-endian: every machine a toolchain is built for
_PT_INTERP = 3


def with_interpreters(executables: Iterable[Path]) -> list[Path]:
    """Resolve ``executables`` and add the ELF interpreters that they need."""
    resolved = [path.resolve() for path in executables]
    interpreters = {found.resolve() for path in resolved if (found := _interpreter(path)) is not None}
    return [*resolved, *sorted(interpreters)]


def _interpreter(path: Path) -> Path | None:
    with path.open("rb") as file:
        header = file.read(64)
        if not header.startswith(_IDENT):
            return None
        (table,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        for index in range(count):
            file.seek(table + index * size)
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", file.read(size))
            if kind == _PT_INTERP:
                file.seek(offset)
                return Path(file.read(length).rstrip(b"\0").decode())
    return None
