"""The kernels of a source, found without running it."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint
from pydantic import AfterValidator, Field

from app.api import Endpoint, Input, endpoint
from app.config import MAX_SOURCE_BYTES
from app.submissions import bounded_source
from pipelines.kernels.discover import Discovery, discover

blueprint = Blueprint("kernels", __name__)


class SourceRequest(Input):
    """A source file."""

    source: Annotated[str, Field(max_length=MAX_SOURCE_BYTES), AfterValidator(bounded_source)]


@endpoint(
    blueprint,
    "POST",
    "/kernels",
    Endpoint("The kernels of a source and their arguments", Discovery, body=SourceRequest),
)
def find(body: SourceRequest) -> Discovery:
    """Tell the kernels of a source, or where it does not parse."""
    return discover(body.source)
