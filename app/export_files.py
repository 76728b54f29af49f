"""A trace as files numbered by pass: what a folder and a zip hold."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator

from pipelines.trace import Manifest
from pipelines.tracefile import TraceFile

MANIFEST = "manifest.json"
ARTIFACTS = {
    "llvm-ir": "kernel.ll",
    "ptx": "kernel.ptx",
    "sass": "kernel.sass",
    "cubin": "kernel.cubin",
    "amdgcn": "kernel.amdgcn",
    "hsaco": "kernel.hsaco",
    "ptxas-log": "ptxas.log",
}

# The first moment that a zip can tell: the same trace gives the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)
_CHUNK = 1 << 20
_LEVEL = 6
_PLAIN_FILE = 0o100644 << 16
_UNIX = 3


def files(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield each file's path below the folder, whatever names a trace carries, and the digest of its bytes."""
    yield "kernel.py", manifest.kernel.source
    for number, file in enumerate(manifest.kernel.files, 1):
        yield f"package/{number:03}-{safe(file.name.removesuffix('.py'))}.py", file.digest
    for number, stage in enumerate(manifest.stages, 1):
        folder = f"{number:02}-{safe(stage.name)}"
        width = max(3, len(str(len(stage.passes))))
        if stage.input:
            yield f"{folder}/{0:0{width}}-input.mlir", stage.input
        for item in stage.passes:
            if item.text:
                name = f"{item.name}-{item.step}" if item.step else item.name
                yield f"{folder}/{item.ordinal:0{width}}-{safe(name)}.mlir", item.text
    for number, artifact in enumerate(manifest.artifacts, 1):
        yield ARTIFACTS.get(artifact.name, f"artifact-{number:02}-{safe(artifact.name)}"), artifact.digest


def contents(file: TraceFile) -> Iterator[tuple[str, bytes]]:
    """Yield all files with their bytes, ``manifest.json`` last."""
    for name, digest in files(file.manifest):
        yield name, file.blob(digest)
    yield MANIFEST, file.manifest.model_dump_json(by_alias=True, indent=1).encode() + b"\n"


def safe(name: str) -> str:
    """Return a name that is one plain path component."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:80] or "unnamed"


def zipped(members: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield a zip of files as it is made; it holds one file at a time."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type, info.external_attr, info.create_system = zipfile.ZIP_DEFLATED, _PLAIN_FILE, _UNIX
            with archive.open(info, "w") as member:
                for at in range(0, len(data), _CHUNK):
                    member.write(data[at : at + _CHUNK])
                    yield from sink.take()
        yield from sink.take()
    yield from sink.take()


class _Sink(io.RawIOBase):
    """What ``zipfile`` writes into where nothing can be sought: keeps what was not taken yet."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        """Say that this can be written to."""
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # zipfile only writes bytes
        """Keep a part."""
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> Iterator[bytes]:
        """Yield what was written since the last call."""
        parts, self._parts = self._parts, []
        if parts:
            yield b"".join(parts)
