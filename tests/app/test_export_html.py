import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import zstandard
from flask.testing import FlaskClient

from app import export_html, exports
from app.services import Services
from pipelines.trace import predecessors
from pipelines.tracefile import TraceFile
from tests.app.helpers import Built, error_of, loupe, upload
from tests.app.hostile import hostile


class Reader(HTMLParser):
    """What a page is made of: its elements with their attributes, and the text in each script and style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside.append("")

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] in ("script", "style") and self.cdata_elem is not None:
            self.inside[-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def script(self, name: str) -> str:
        scripts = [attributes for tag, attributes in self.elements if tag in ("script", "style")]
        return next(text for one, text in zip(scripts, self.inside, strict=True) if one.get("id") == name)


def read(client: FlaskClient, trace_id: str) -> tuple[str, Reader]:
    answer = client.get(f"/api/v1/traces/{trace_id}/export.html")
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
    return answer.text, Reader(answer.text)


def extra(reader: Reader) -> dict[str, Any]:
    frame = base64.b64decode(reader.script("export-extra"))
    found: dict[str, Any] = json.loads(zstandard.ZstdDecompressor().decompress(frame))
    return found


def test_the_page_carries_the_trace_and_its_alignments(
    client: FlaskClient, services: Services, built: Built, stored: str
) -> None:
    page, reader = read(client, stored)
    assert base64.b64decode(reader.script("export-archive")) == built.data
    told = extra(reader)
    assert told["trace"]["summary"] == client.get(f"/api/v1/traces/{stored}").get_json()["summary"]
    assert f'href="http://localhost/t/{stored}"' in page
    file = TraceFile(built.data)
    numbers = {name: number for number, name in enumerate(file.manifest.digests())}
    pairs = {
        (file.manifest.resolve(before), file.manifest.resolve(after))
        for after, before in predecessors(file.manifest).items()
        if before and file.manifest.resolve(before).text != file.manifest.resolve(after).text
    }
    assert set(told["diffs"]) == {f"{numbers[a.text]} {numbers[b.text]}" for a, b in pairs}
    assert pairs
    for before, after in pairs:
        diff = services.analyses.diff(file, before, after)
        plus, minus, renamed, fallback, runs = told["diffs"][f"{numbers[before.text]} {numbers[after.text]}"]
        assert (plus, minus, renamed, bool(fallback)) == diff[1:]
        assert runs == [value for kind, i1, i2, j1, j2 in diff.ops for value in (kind, i2 - i1, j2 - j1)]


@pytest.mark.parametrize("kind", ["plain", "hostile"])
def test_nothing_of_a_trace_leaves_its_place(client: FlaskClient, built: Built, kind: str) -> None:
    page, reader = read(client, upload(client, hostile(built) if kind == "hostile" else built))
    scripts = reader.all("script")
    data = ["export-worker", "export-archive", "export-extra"]
    assert [item.get("id") for item in scripts] == [None, *data, None]
    assert len(reader.all("style")) == 1
    assert not reader.all("link")
    assert not [item for _, attributes in reader.elements for item in attributes if item.startswith("on")]
    sources = [value for _, attributes in reader.elements for name, value in attributes.items() if name == "src"]
    assert sources == []
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", reader.script("export-archive"))
    assert page.count("</script>") == 5
    assert page.lower().count("<script") == 5


def test_the_policy_allows_its_own_scripts_and_no_request(client: FlaskClient, stored: str) -> None:
    _, reader = read(client, stored)
    policy = next(item["content"] for item in reader.all("meta") if item.get("http-equiv") == "Content-Security-Policy")
    assert policy
    rules = {name: words for name, *words in (rule.split() for rule in policy.split(";"))}
    assert rules["default-src"] == ["'none'"]
    assert rules["worker-src"] == ["blob:"]
    assert not {"connect-src", "font-src"} & set(rules)
    own = [reader.inside[0], reader.inside[-1]]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in own]
    assert rules["script-src"] == [f"'sha256-{value}'" for value in hashes]
    assert rules["style-src"] == [f"'nonce-{reader.all('style')[0]['nonce']}'"]


def test_the_page_is_made_once_and_equal(client: FlaskClient, stored: str) -> None:
    url = f"/api/v1/traces/{stored}/export.html"
    first = client.get(url)
    assert client.get(url).data == first.data
    again = client.get(url, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_a_trace_that_is_too_large_is_refused(
    client: FlaskClient, stored: str, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(export_html, "MAX_FILE", 100)
    answer = client.get(f"/api/v1/traces/{stored}/export.html")
    assert (answer.status_code, error_of(answer)["code"]) == (413, "too_large")
    ended = loupe("export", file, "--html", tmp_path / "x.html", home=tmp_path)
    assert ended.exit_code == 1
    assert "too large for one HTML file" in ended.output


def test_without_a_summary_the_page_aligns_itself(
    client: FlaskClient, services: Services, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(services.analyses), "summary_on_request", lambda *_: None)
    told = extra(read(client, stored)[1])
    assert (told["trace"]["summary"], told["diffs"]) == (None, {})


def test_the_command_writes_the_page(client: FlaskClient, stored: str, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "scale.html"
    assert loupe("export", file, "--html", out, home=tmp_path).exit_code == 0
    own, served = Reader(out.read_text(encoding="utf-8")), read(client, stored)[1]
    assert own.script("export-archive") == served.script("export-archive")
    assert extra(own)["diffs"] == extra(served)["diffs"]
    assert extra(own)["trace"]["summary"] == extra(served)["trace"]["summary"]
    assert "Open on the server" not in out.read_text(encoding="utf-8")


def test_no_link_leads_to_a_page_that_only_a_server_has(client: FlaskClient, stored: str) -> None:
    assert f'href="/?from={stored}"' in client.get(f"/t/{stored}").text
    _, reader = read(client, stored)
    links = [str(link.get("href")) for link in reader.all("a")]
    assert links
    assert not [link for link in links if link.startswith("/")]


def test_only_so_many_pages_are_made_at_once(client: FlaskClient, stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "RENDER_WAIT", 0.01)
    with exports._rendering, exports._rendering:
        answer = client.get(f"/api/v1/traces/{stored}/export.html")
    assert answer.status_code == 429
    assert "Try again" in error_of(answer)["message"]
    read(client, stored)
