"""Which torch launch code gets, as the home page tells it."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from app import workers
from app.services import Services
from pipelines.trace import Tool


def test_nothing_is_said_before_a_worker_was_ready(client: FlaskClient):
    assert client.get("/index.json").get_json()["torch"] is None
    assert "imports torch" not in client.get("/").get_data(as_text=True)


@pytest.mark.parametrize(
    ("version", "told", "words"),
    [
        (None, "stand-in", "a stand-in with types and shapes"),
        ("2.13.0+cpu", "2.13.0 (CPU)", "torch 2.13.0 (CPU), told that it has a GPU"),
        ("2.13.0+cu130", "2.13.0+cu130", "torch 2.13.0+cu130"),
    ],
)
def test_the_home_page_says_which_torch_there_is(
    client: FlaskClient, services: Services, ready_worker: str, version: str | None, told: str, words: str
):
    with services.database.write() as session:
        facts = workers.facts(session)
        assert facts
        tools = [tool for tool in facts.toolchain.tools if tool.name != "torch"]
        if version:
            tools.append(Tool(name="torch", version=version, sha256="0" * 64))
        toolchain = facts.toolchain.model_copy(update={"tools": tuple(tools)})
        changed = facts.model_copy(update={"toolchain": toolchain})
        workers.report(session, ready_worker, "ready", facts=changed)
    assert client.get("/index.json").get_json()["torch"] == told
    assert words in client.get("/").get_data(as_text=True)
