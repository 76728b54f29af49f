"""The OpenAPI document, made from the url map and the models that check requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from flask import Blueprint, Flask, Response, current_app
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from werkzeug.routing import Rule

from app import api, wire
from app.api import Endpoint

blueprint = Blueprint("openapi", __name__)

REF = "#/components/schemas/{model}"


class ErrorBody(api.Output):
    """What went wrong, in words for a user, and where."""

    code: str
    message: str
    detail: Any = None


class ErrorReply(api.Output):
    """Every answer other than success."""

    error: ErrorBody


@blueprint.get(f"{api.PREFIX}/openapi.json")
def document() -> Response:
    """Serve the description of this API."""
    data = json.dumps(describe(current_app)).encode()
    return wire.Packed.of("application/json", data).response(wire.REVALIDATE)


def describe(app: Flask) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of all endpoints."""
    found = list(_endpoints(app))
    models: set[type[BaseModel]] = {ErrorReply}
    for _, _, spec in found:
        models |= {model for model in (spec.returns, spec.body) if isinstance(model, type)}
    ordered = sorted(models, key=lambda model: model.__name__)
    _, schemas = models_json_schema(
        [(model, "validation" if issubclass(model, api.Input) else "serialization") for model in ordered],
        ref_template=REF,
    )
    paths: dict[str, dict[str, Any]] = {}
    for rule, method, spec in found:
        paths.setdefault(_path(rule), {})[method.lower()] = _operation(rule, spec)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Loupe", "version": "1", "description": "Compile GPU kernels and read every pass."},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": schemas.get("$defs", {})},
    }


def _endpoints(app: Flask) -> Iterator[tuple[Rule, str, Endpoint]]:
    for rule in app.url_map.iter_rules():
        spec = getattr(app.view_functions[rule.endpoint], "endpoint_spec", None)
        if isinstance(spec, Endpoint):
            for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
                yield rule, method, spec


def _path(rule: Rule) -> str:
    return re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)


def _operation(rule: Rule, spec: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": spec.summary,
        "operationId": rule.endpoint.replace(".", "_"),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in sorted(rule.arguments)
        ],
        "responses": {str(spec.status): _content("Success", spec.returns)},
    }
    operation["responses"][str(spec.status)]["content"] |= {kind: {} for kind in spec.also}
    operation["parameters"] += [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": words}
        for name, words in spec.headers.items()
    ]
    if spec.query:
        operation["parameters"] += list(_query(spec.query))
    if spec.body:
        operation["requestBody"] = {**_content("", spec.body), "required": True}
        del operation["requestBody"]["description"]
    for status, reason in (*_errors(rule, spec).items(), ("default", "An error")):
        operation["responses"][str(status)] = _content(reason, ErrorReply)
    return operation


def _errors(rule: Rule, spec: Endpoint) -> dict[int, str]:
    """Return the errors of an endpoint: its own, and those that follow from what it takes."""
    found: dict[int, str] = {}
    if rule.arguments:
        found[404] = "there is nothing at this address"
    if spec.body:
        found |= {413: "the body is too large", 415: "the body is of another media type"}
    if spec.query or spec.body:
        found[422] = "a parameter or field is not as described; detail.field names it"
    if isinstance(spec.body, type):
        found[400] = "the body is not JSON"
    return dict(sorted((found | dict(spec.errors)).items()))


def _content(description: str, kind: type[BaseModel] | str) -> dict[str, Any]:
    if isinstance(kind, str):
        return {"description": description, "content": {kind: {}}}
    schema = {"$ref": REF.format(model=kind.__name__)}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _query(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    schema = model.model_json_schema(by_alias=True)
    for name, part in schema.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in schema.get("required", []), "schema": part}
