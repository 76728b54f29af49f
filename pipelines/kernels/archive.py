"""The Python files of an uploaded zip: read in memory, bounded before and after decompression."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pipelines.kernels.package import (
    MAX_FILE_BYTES,
    MAX_PACKAGE_BYTES,
    MAX_PACKAGE_FILES,
    PackageError,
    check_package,
    check_path,
)

MAX_ARCHIVE_BYTES = 16 << 20
MAX_MEMBERS = 10_000
MAX_RATIO = 200
MAX_SKIPPED = 200

# Text that is smaller than this may compress as well as it likes.
_RATIO_FROM = 64 << 10
_CENTRAL = b"PK\x01\x02"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1


@dataclass
class Archive:
    """A zip's Python files by path, and what else it holds: the first names, and how many there are."""

    files: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    skipped_count: int = 0

    def skip(self, name: str) -> None:
        """Leave a member out."""
        self.skipped_count += 1
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append(name[:200])


def read_archive(data: bytes) -> Archive:
    """Return the Python files of a zip; a folder around everything whose name is no package's is left out.

    Raises:
        PackageError: it is no zip, is too large or grows too much, holds links, absolute paths or ``..``, or text that
            is not UTF-8.
    """
    if len(data) > MAX_ARCHIVE_BYTES:
        raise PackageError(f"the zip is larger than {MAX_ARCHIVE_BYTES >> 20} MB")
    if data.count(_CENTRAL) > MAX_MEMBERS:
        raise PackageError(f"the zip has more than {MAX_MEMBERS} members; zip only the package")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            return _read(opened)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
        if isinstance(error, PackageError):
            raise
        raise PackageError(f"the file is no sound zip: {error or type(error).__name__}") from None


def _read(opened: zipfile.ZipFile) -> Archive:
    found = Archive()
    texts: dict[str, str] = {}
    members = [member for member in opened.infolist() if not _is_folder(member)]
    outside = _outside(member.filename for member in members)
    total = 0
    for member in members:
        path = member.filename.removeprefix(outside)
        if not _is_source(path):
            found.skip(member.filename)
            continue
        if path in texts:
            raise PackageError(f"the zip has {path} twice")
        if len(texts) == MAX_PACKAGE_FILES:
            raise PackageError(f"the zip has more than {MAX_PACKAGE_FILES} Python files; zip only the package")
        texts[path] = _text(opened, member)
        total += member.file_size
        if total > MAX_PACKAGE_BYTES:
            raise PackageError(f"the zip has more than {MAX_PACKAGE_BYTES >> 20} MB of Python; zip only the package")
    if not texts:
        raise PackageError("the zip has no Python file")
    check_package(texts)
    found.files = texts
    return found


def _is_folder(member: zipfile.ZipInfo) -> bool:
    """Check what a member is; raise PackageError for one that no honest zip of a package has."""
    name = member.filename
    parts = PurePosixPath(name).parts
    if not name:
        raise PackageError("the zip has a member without a name")
    if name.startswith("/") or "\\" in name or ".." in parts or "\0" in name or (parts and ":" in parts[0]):
        raise PackageError(f"the zip has a path that leads out of it: {name[:200]!r}")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise PackageError(f"the zip has a link or a device: {name[:200]!r}")
    return member.is_dir()


def _outside(names: Iterable[str]) -> str:
    """Return the folder around everything that is no package, such as ``repo-main/``, or an empty text."""
    tops = {name.partition("/")[0] if "/" in name else "" for name in names if not name.startswith("__MACOSX/")}
    top = tops.pop() if len(tops) == 1 else ""
    return f"{top}/" if top and not top.isidentifier() else ""


def _is_source(path: str) -> bool:
    if not path.endswith(".py"):
        return False
    try:
        check_path(path)
    except PackageError:  # a hidden file, or a folder that cannot be imported from
        return False
    return True


def _text(opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> str:
    name = member.filename
    if member.flag_bits & _ENCRYPTED:
        raise PackageError(f"{name} is encrypted")
    if member.compress_type not in _METHODS:
        raise PackageError(f"{name} is compressed in a way that is not read here; use deflate")
    if member.file_size > MAX_FILE_BYTES:
        raise PackageError(f"{name} has more than {MAX_FILE_BYTES >> 20} MB")
    if member.file_size > max(_RATIO_FROM, MAX_RATIO * member.compress_size):
        raise PackageError(f"{name} grows more than {MAX_RATIO} times when it is read")
    with opened.open(member) as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) != member.file_size:
        raise PackageError(f"{name} is not as large as the zip says")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise PackageError(f"{name} is not UTF-8: byte {error.start}") from None
