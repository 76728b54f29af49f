import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import create_app
from app.config import Settings, allowed_host
from app.security import host_name
from app.services import EXTENSION
from tests.app.helpers import error_of

FILLED = {"trace_id": "t" * 22, "group_id": "g" * 22, "digest": "d" * 64, "address": "ttir:0", "name": "base.js"}


def requests(app: Flask) -> Iterator[tuple[str, str]]:
    """Every method and address that the app answers."""
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", lambda match: FILLED[match[1]], rule.rule)
        for method in sorted(rule.methods or ()):
            yield method, path


def changes(app: Flask) -> list[tuple[str, str]]:
    return [(method, path) for method, path in requests(app) if method not in ("GET", "HEAD", "OPTIONS")]


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.7:8000", "[::2]"]
)
def test_foreign_host_is_refused_everywhere(app: Flask, client: FlaskClient, host: str) -> None:
    for method, path in requests(app):
        answer = client.open(path, method=method, headers={"Host": host})
        assert answer.status_code == 421, (method, path)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:9", "LOCALHOST:8000"])
def test_own_names_are_answered(client: FlaskClient, host: str) -> None:
    assert client.get("/health", headers={"Host": host}).status_code == 200


def test_further_names_are_allowed_by_the_operator(settings: Settings) -> None:
    app = create_app(replace(settings, host="0.0.0.0", allowed_hosts=("Loupe.example",)))
    found = {
        host: app.test_client().get("/health", headers={"Host": host}).status_code
        for host in ("loupe.example", "0.0.0.0", "other.example")
    }
    app.extensions[EXTENSION].close()
    assert found == {"loupe.example": 200, "0.0.0.0": 421, "other.example": 421}


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "http://localhost:3000"},
    {"Origin": "http://localhost:8000.evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "http://"},
    {"Origin": "http://[::1"},
    {"Origin": "http://[zz]:1"},
    {"Origin": "http://localhost:99999"},
    {"Origin": "https://localhost:8000"},
    {"Origin": "localhost:8000"},
    {"Origin": "ftp://localhost:8000"},
    {"Origin": "http://user@localhost:8000"},
    {"Origin": "http://localhost:8000/path"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_change_from_a_foreign_page_is_refused_everywhere(
    app: Flask, client: FlaskClient, headers: dict[str, str]
) -> None:
    assert len(changes(app)) >= 4
    for method, path in changes(app):
        answer = client.open(path, method=method, headers={"Host": "localhost:8000", **headers})
        assert answer.status_code == 403, (method, path)


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://localhost:8000"}, {"Sec-Fetch-Site": "same-origin"}, {}, {"Sec-Fetch-Site": "none"}]
)
def test_own_pages_and_plain_clients_may_change(client: FlaskClient, headers: dict[str, str]) -> None:
    answer = client.post("/api/v1/kernels", json={"source": ""}, headers={"Host": "localhost:8000", **headers})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost", "http://localhost:80"),
        ("LOCALHOST:80", "http://localhost"),
        ("[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_one_origin_may_be_written_differently(client: FlaskClient, host: str, origin: str) -> None:
    answer = client.post("/api/v1/kernels", json={"source": ""}, headers={"Host": host, "Origin": origin})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Loupe.Example", "loupe.example"),
        ("10.0.0.7", "10.0.0.7"),
        ("[::1]", "::1"),
        ("FE80:0::7", "fe80::7"),
        ("my_box", "my_box"),
    ],
)
def test_allowed_host_is_kept_as_requests_name_it(text: str, name: str) -> None:
    assert allowed_host(text) == name
    assert host_name(f"[{name}]:80" if ":" in name else f"{name}:80") == name


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("loupe.example:8000", "write loupe.example"),
        ("https://loupe.example", "write loupe.example"),
        ("https://loupe.example:443/x", "write loupe.example"),
        ("loupe.example.", "write loupe.example"),
        ("[::1]:80", "write [::1]"),
        ("*.example", "no host name"),
        ("*", "no host name"),
        ("a..b", "no host name"),
    ],
)
def test_allowed_host_that_would_never_match_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str, advice: str
) -> None:
    monkeypatch.setenv("LOUPE_ALLOWED_HOSTS", f"good.example,{text}")
    with pytest.raises(ValueError, match="LOUPE_ALLOWED_HOSTS holds") as caught:
        Settings.from_environment()
    assert advice in str(caught.value)


def test_forms_of_other_sites_cannot_pose_as_json(client: FlaskClient) -> None:
    answer = client.post("/api/v1/kernels", data='{"source": ""}', content_type="text/plain")
    assert answer.status_code == 415
    assert "application/json" in error_of(answer)["message"]


def policy(answer: TestResponse) -> dict[str, str]:
    parts = answer.headers["Content-Security-Policy"].split("; ")
    return {name: rest for name, _, rest in (part.partition(" ") for part in parts)}


def test_every_answer_carries_the_policy(app: Flask, client: FlaskClient) -> None:
    for method, path in requests(app):
        answer = client.open(path, method=method)
        found = policy(answer)
        assert found["default-src"] == "'self'", (method, path)
        assert found["frame-ancestors"] == "'none'"
        assert found["object-src"] == "'none'"
        assert found["base-uri"] == "'none'"
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in answer.headers
        answer.close()


def test_style_nonce_is_new_for_every_page(client: FlaskClient) -> None:
    nonces = []
    for _ in range(2):
        answer = client.get("/")
        (nonce,) = re.findall(r'<meta name="csp-nonce" content="([^"]+)">', answer.text)
        assert policy(answer)["style-src"] == f"'self' 'nonce-{nonce}'"
        assert "script-src" not in policy(answer)
        nonces.append(nonce)
    assert nonces[0] != nonces[1]


def test_pages_have_no_inline_scripts_or_styles(client: FlaskClient, stored: str) -> None:
    for path in ("/", "/about", f"/t/{stored}", "/nowhere"):
        page = client.get(path).text
        for tag in re.findall(r"<script\b[^>]*>", page):
            assert " src=" in tag or 'type="application/json"' in tag, (path, tag)
        assert not re.search(r"<[^>]+\s(?:on\w+|style)=", page), path
        assert "<style" not in page


@pytest.mark.parametrize("host", ["", "a@b", "a/b", "a:b", "a:99999", "[::1"])
def test_what_is_no_host_has_no_name(host: str) -> None:
    assert host_name(host) is None
