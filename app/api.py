"""API endpoints: inputs checked by pydantic models, which also describe them in OpenAPI.

A view declared with ``endpoint`` gets its path parts, a ``query`` and a ``body`` as the models it names. What it
returns is a model, which becomes JSON, or a response of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_origin

from flask import Blueprint, Response, request
from pydantic import BaseModel, ConfigDict, ValidationError

from app import wire
from app.config import MAX_JSON_BYTES
from app.errors import ApiError

PREFIX = "/api/v1"

View = Callable[..., BaseModel | Response]
Parsed = TypeVar("Parsed", bound=BaseModel)


class Input(BaseModel):
    """What a client sends; unknown fields are refused, so that a misspelt one is not ignored."""

    model_config = ConfigDict(extra="forbid")


class Output(BaseModel):
    """What the API answers."""

    model_config = ConfigDict(populate_by_name=True)


@dataclass(frozen=True)
class Endpoint:
    """What OpenAPI needs to know of a view.

    ``returns`` is a model or a media type, ``also`` are further media types, ``headers`` are what a client may send.
    """

    summary: str
    returns: type[BaseModel] | str
    status: int = 200
    query: type[BaseModel] | None = None
    body: type[BaseModel] | str | None = None
    errors: Mapping[int, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


def endpoint(blueprint: Blueprint, method: str, rule: str, spec: Endpoint) -> Callable[[View], View]:
    """Register a view under the API's prefix and keep its description beside it."""

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def handle(**parts: Any) -> Response:
            if spec.query:
                parts["query"] = parse_query(spec.query)
            if isinstance(spec.body, type):
                parts["body"] = parse_body(spec.body)
            return reply(view(**parts), spec.status)

        handle.endpoint_spec = spec  # type: ignore[attr-defined]  # read back by app.openapi
        blueprint.add_url_rule(PREFIX + rule, view.__name__, handle, methods=[method])
        return view

    return decorate


def reply(result: BaseModel | Response, status: int = 200) -> Response:
    """Turn a model into a JSON response, sent once while it stays the same; leave a response as it is."""
    if isinstance(result, Response):
        return result
    data = result.model_dump_json(by_alias=True).encode()
    if status == 200 and request.method in ("GET", "HEAD"):
        return wire.Packed.of("application/json", data).response(wire.REVALIDATE)
    return Response(data, status=status, mimetype="application/json")


def parse_body(model: type[Parsed]) -> Parsed:
    """Read the JSON body into a model; nesting is bounded by the parser.

    Raises:
        ApiError: 415 for another media type, 413 when too large, 422 with the first fault in words.
    """
    if request.mimetype != "application/json":
        raise ApiError(415, "The body must be JSON, sent with Content-Type: application/json.")
    request.max_content_length = MAX_JSON_BYTES
    try:
        return model.model_validate_json(request.get_data(cache=False))
    except ValidationError as error:
        raise _invalid(error, "body") from None


def parse_query(model: type[Parsed]) -> Parsed:
    """Read the query string into a model; a field that is a tuple takes all that have its name.

    Raises:
        ApiError: 422 with the first fault in words.
    """
    given: dict[str, Any] = request.args.to_dict()
    for name, part in model.model_fields.items():
        if name in given and get_origin(part.annotation) is tuple:
            given[name] = tuple(request.args.getlist(name))
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise _invalid(error, "query") from None


def _invalid(error: ValidationError, where: str) -> ApiError:
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    at = ".".join(str(part) for part in fault["loc"])
    status = 400 if fault["type"] == "json_invalid" else 422
    message = fault["msg"].removeprefix("Value error, ")
    return ApiError(status, f"{at}: {message}" if at else message, detail={"in": where, "field": at})
