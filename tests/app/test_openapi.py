import re
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.api import PREFIX
from tests.app.helpers import Built

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "http-api.md"


@pytest.fixture
def document(client: FlaskClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{PREFIX}/openapi.json").get_json()
    return found


def api_rules(app: Flask) -> set[tuple[str, str]]:
    found = set()
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith(PREFIX) and not rule.rule.endswith("openapi.json"):
            path = re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)
            found |= {(path, method.lower()) for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}}
    return found


def test_every_address_of_the_api_is_described(app: Flask, document: dict[str, Any]) -> None:
    described = {(path, method) for path, methods in document["paths"].items() for method in methods}
    assert described == api_rules(app)
    assert len(described) >= 12


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(references, node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


def test_every_reference_resolves(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    found = references(document)
    assert {"#/components/schemas/TraceReply", "#/components/schemas/Manifest"} <= found
    assert all(reference.removeprefix("#/components/schemas/") in schemas for reference in found)


def test_operations_say_what_they_take_and_answer(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts = {part["name"] for part in operation["parameters"] if part["in"] == "path"}
            assert parts == set(re.findall(r"{(\w+)}", path))
            assert operation["summary"]
            assert "default" in operation["responses"]
            assert ("requestBody" in operation) == (method == "post")
    names = [op["operationId"] for methods in document["paths"].values() for op in methods.values()]
    assert len(set(names)) == len(names)
    diff = document["paths"][f"{PREFIX}/traces/{{trace_id}}/diff"]["get"]
    assert {part["name"] for part in diff["parameters"] if part["in"] == "query"} == {"from", "to"}


def test_operations_name_the_errors_that_they_answer(document: dict[str, Any]) -> None:
    told = {
        f"{method} {path.removeprefix(PREFIX)}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    for name, operation in told.items():
        codes = set(operation["responses"])
        assert ("404" in codes) == ("{" in name), name
        assert ({"413", "415", "422"} <= codes) >= name.startswith("post"), name
    trace = "get /traces/{trace_id}"
    for path in ("/passes/{address}", "/texts/{digest}", "/diff", "/search", "/file"):
        assert "409" in told[trace + path]["responses"], path
    text = told[f"{trace}/texts/{{digest}}"]["responses"]["200"]["content"]
    assert set(text) == {"text/plain", "application/octet-stream"}
    headers = [part["name"] for part in told[f"{trace}/events"]["parameters"] if part["in"] == "header"]
    assert headers == ["Last-Event-ID"]


ANSWERS = ["", "/passes/ttir:1", "/diff?from=ttir:0&to=ttir:1", "/search?q=tt", "/file", "/texts/{text}"]


@pytest.mark.parametrize(
    "path", [*(f"/traces/{{id}}{rest}" for rest in ANSWERS), "/targets", "/examples", "/openapi.json"]
)
def test_every_answer_to_get_is_sent_once(client: FlaskClient, built: Built, stored: str, path: str) -> None:
    address = PREFIX + path.format(id=stored, text=built.manifest.resolve("ttir:1").text)
    with client.get(address) as first:
        assert first.status_code == 200
        with client.get(address, headers={"If-None-Match": first.headers["ETag"]}) as again:
            assert (again.status_code, again.data) == (304, b"")


def test_every_address_is_in_the_documents(app: Flask) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for path, method in sorted(api_rules(app)):
        line = f"{method.upper()} {path}"
        assert line.replace("{trace_id}", "{id}").replace("{group_id}", "{id}") in text, line
