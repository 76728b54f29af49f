"""The kernels of a source, found without running it."""

from __future__ import annotations

from typing import Annotated

from flask import Blueprint
from pydantic import Field

from app.api import Endpoint, Input, endpoint
from pipelines.kernels.discover import Discovery, discover

blueprint = Blueprint("kernels", __name__)


class SourceRequest(Input):
    """A source file."""

    source: Annotated[str, Field(max_length=1 << 20)]


@endpoint(
    blueprint,
    "POST",
    "/kernels",
    Endpoint("The kernels of a source and their arguments", Discovery, body=SourceRequest),
)
def find(body: SourceRequest) -> Discovery:
    """Tell the kernels of a source, or where it does not parse."""
    return discover(body.source)
