"""Where sources come from that nobody typed: uploaded zips and the modules of installed libraries."""

from __future__ import annotations

import threading

from flask import Blueprint, request
from pydantic import Field

from app.api import Endpoint, Output, endpoint
from app.errors import ApiError
from pipelines.kernels.archive import MAX_ARCHIVE_BYTES, read_archive
from pipelines.kernels.library import LibraryError, find_library_file
from pipelines.kernels.package import PackageError, entry_candidates

blueprint = Blueprint("packages", __name__)

# A zip is held in memory while it is read.
_reading = threading.BoundedSemaphore(2)

MEDIA_TYPES = ("application/zip", "application/x-zip-compressed", "application/octet-stream")


class PackageReply(Output):
    """The Python files of a zip."""

    files: dict[str, str] = Field(description="text by path, as POST /compiles takes it")
    candidates: list[str] = Field(description="files that one would start with, the likeliest first")
    skipped: list[str] = Field(description="members that are no Python files, at most 200 of them")
    skipped_count: int


@endpoint(
    blueprint,
    "POST",
    "/packages",
    Endpoint(
        "Read a zip into the files of a package",
        PackageReply,
        body="application/zip",
        errors={422: "the file is no zip of a package that is taken here", 429: "other zips are being read"},
    ),
)
def read() -> PackageReply:
    """Unpack a zip in memory; nothing is stored, and nothing of it runs."""
    if request.mimetype not in MEDIA_TYPES:
        raise ApiError(415, "Send the zip as the body, with Content-Type: application/zip.")
    request.max_content_length = MAX_ARCHIVE_BYTES
    data = request.get_data(cache=False)
    if not _reading.acquire(timeout=10):
        raise ApiError(429, "Other zips are being read. Try again in a moment.")
    try:
        found = read_archive(data)
    except PackageError as error:
        raise ApiError(422, str(error), detail={"in": "body", "field": "files"}) from None
    finally:
        _reading.release()
    candidates = entry_candidates(found.files)
    return PackageReply(
        files=found.files, candidates=candidates, skipped=found.skipped, skipped_count=found.skipped_count
    )


class ModuleReply(Output):
    """A module of a library that is installed where Loupe runs."""

    module: str
    file: str = Field(description="its path below the folder of installed packages")
    source: str


@endpoint(
    blueprint,
    "GET",
    "/modules/<name>",
    Endpoint("The source of an installed library's module", ModuleReply),
)
def read_module(name: str) -> ModuleReply:
    """Find a module's file by its name; nothing is imported."""
    try:
        found = find_library_file(name)
    except LibraryError as error:
        raise ApiError(404, str(error)) from None
    return ModuleReply(module=name, file=found.path, source=found.text)
