"""Uploaded zips, read into the files of a package."""

from __future__ import annotations

from flask import Blueprint, request
from pydantic import Field

from app.api import Endpoint, Output, endpoint
from app.errors import ApiError
from pipelines.kernels.archive import MAX_ARCHIVE_BYTES, read_archive
from pipelines.kernels.package import PackageError, entry_candidates

blueprint = Blueprint("packages", __name__)

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
        errors={422: "the file is no zip of a package that is taken here"},
    ),
)
def read() -> PackageReply:
    """Unpack a zip in memory; nothing is stored, and nothing of it runs."""
    if request.mimetype not in MEDIA_TYPES:
        raise ApiError(415, "Send the zip as the body, with Content-Type: application/zip.")
    request.max_content_length = MAX_ARCHIVE_BYTES
    try:
        found = read_archive(request.get_data(cache=False))
    except PackageError as error:
        raise ApiError(422, str(error), detail={"in": "body", "field": "files"}) from None
    candidates = entry_candidates(found.files)
    return PackageReply(
        files=found.files, candidates=candidates, skipped=found.skipped, skipped_count=found.skipped_count
    )
