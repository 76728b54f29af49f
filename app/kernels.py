"""The kernels of a source, found without running it."""

from __future__ import annotations

from typing import Annotated, Self

from flask import Blueprint
from pydantic import Field, model_validator

from app.api import Endpoint, Input, endpoint
from app.config import MAX_SOURCE_BYTES
from app.submissions import Files, Text, bounded_source, entry_file
from pipelines.kernels.discover import Discovery, discover
from pipelines.kernels.package import check_package
from pipelines.kernels.package_kernels import discover_package

blueprint = Blueprint("kernels", __name__)


class SourceRequest(Input):
    """A source file, or the files of a package and the one to start with."""

    source: Annotated[str | None, Field(max_length=MAX_SOURCE_BYTES)] = None
    files: Files | None = None
    file: Text | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.source is None) == (self.files is None):
            raise ValueError("give source or files, one of them")
        if self.source is not None:
            bounded_source(self.source)
        if self.files:
            check_package(self.files)
            entry_file(self.files, self.file)
        return self


@endpoint(
    blueprint,
    "POST",
    "/kernels",
    Endpoint("The kernels of a source and their arguments", Discovery, body=SourceRequest),
)
def find(body: SourceRequest) -> Discovery:
    """Tell the kernels of a source, or where it does not parse."""
    if body.files:
        return discover_package(body.files, entry_file(body.files, body.file))
    return discover(body.source or "")
