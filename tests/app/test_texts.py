import gzip
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from flask.testing import FlaskClient

from app import search
from app.services import Services
from pipelines import tracefile
from tests.app.helpers import PTX, SASS, Built, error_of, upload


def text_of(built: Built, address: str) -> str:
    return built.manifest.resolve(address).text


DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    "gzip": gzip.decompress,
    "identity": bytes,
}


@pytest.mark.parametrize("encoding", DECODERS)
def test_text_is_sent_in_the_encoding_the_client_takes(
    client: FlaskClient, built: Built, stored: str, encoding: str
) -> None:
    digest = text_of(built, "ttir:0")
    answer = client.get(f"/api/v1/traces/{stored}/texts/{digest}", headers={"Accept-Encoding": encoding})
    assert answer.headers.get("Content-Encoding", "identity") == encoding
    assert DECODERS[encoding](answer.data) == built.blobs[digest]
    assert answer.mimetype == "text/plain"
    assert "immutable" in answer.headers["Cache-Control"]
    again = client.get(
        f"/api/v1/traces/{stored}/texts/{digest}",
        headers={"Accept-Encoding": encoding, "If-None-Match": answer.headers["ETag"]},
    )
    assert again.status_code == 304


@pytest.mark.parametrize(
    ("accept", "encoding"),
    [("gzip, deflate, br, zstd", "zstd"), ("gzip;q=1.0, zstd;q=0", "gzip"), ("br", None), ("", None)],
)
def test_encoding_follows_what_is_accepted(
    client: FlaskClient, built: Built, stored: str, accept: str, encoding: str | None
) -> None:
    path = f"/api/v1/traces/{stored}/texts/{text_of(built, 'ttir:0')}"
    assert client.get(path, headers={"Accept-Encoding": accept}).headers.get("Content-Encoding") == encoding


def test_encoded_text_is_kept(client: FlaskClient, services: Services, built: Built, stored: str) -> None:
    digest = text_of(built, "ttir:0")
    client.get(f"/api/v1/traces/{stored}/texts/{digest}", headers={"Accept-Encoding": "zstd"})
    kept = services.cache.get("wire", f"{digest}:zstd")
    assert kept
    assert DECODERS["zstd"](kept) == built.blobs[digest]


def test_sass_comes_plain_unless_asked_for_raw(client: FlaskClient, built: Built, stored: str) -> None:
    path = f"/api/v1/traces/{stored}/texts/{text_of(built, 'sass')}"
    assert "/* 0x" not in client.get(path).text
    assert "MOV R1" in client.get(path).text
    assert client.get(f"{path}?raw=1").data == SASS
    assert client.get(path).headers["ETag"] != client.get(f"{path}?raw=1").headers["ETag"]


def test_text_of_another_trace_is_not_served(client: FlaskClient, built: Built, failed: Built, stored: str) -> None:
    other = upload(client, failed)
    ptx = text_of(built, "ptx")
    assert client.get(f"/api/v1/traces/{stored}/texts/{ptx}").data == PTX
    assert client.get(f"/api/v1/traces/{other}/texts/{ptx}").status_code == 404
    assert client.get(f"/api/v1/traces/{stored}/texts/nonsense").status_code == 404


def test_diff_covers_both_texts(client: FlaskClient, built: Built, stored: str) -> None:
    last = len(built.manifest.stage("ttir").passes)
    told = client.get(f"/api/v1/traces/{stored}/diff?from=ttir:0&to=ttir:{last}").get_json()
    assert told["from"]["address"] == "ttir:0"
    assert told["to"]["address"] == f"ttir:{last}"
    ends = (0, 0)
    for _kind, i1, i2, j1, j2 in told["ops"]:
        assert (i1, j1) == ends
        ends = (i2, j2)
    assert ends == (told["from"]["lines"], told["to"]["lines"])
    assert told["plus"] + told["minus"] > 0
    assert told["fallback"] is False


def test_diff_is_sent_once(client: FlaskClient, stored: str) -> None:
    path = f"/api/v1/traces/{stored}/diff?from=ttir:0&to=ttir:1"
    first = client.get(path)
    assert client.get(path, headers={"If-None-Match": first.headers["ETag"]}).status_code == 304


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("from=ttir:0", 422),
        ("", 422),
        ("from=ttir:0&to=ttir:1&extra=1", 422),
        ("from=ttir:0&to=ttir:99", 404),
        ("from=ttir:0&to=cubin", 409),
        ("from=" + "x" * 601 + "&to=ttir:0", 422),
    ],
)
def test_bad_diff_is_refused_in_words(client: FlaskClient, stored: str, query: str, status: int) -> None:
    answer = client.get(f"/api/v1/traces/{stored}/diff?{query}")
    assert answer.status_code == status
    assert len(error_of(answer)["message"]) > 10


def hits(client: FlaskClient, trace: str, query: str, **more: str) -> list[tuple[str, int, str]]:
    answer = client.get(f"/api/v1/traces/{trace}/search", query_string={"q": query, **more})
    assert answer.status_code == 200, answer.text
    return [(hit["address"], hit["line"], hit["text"]) for hit in answer.get_json()["hits"]]


@pytest.mark.parametrize("regex", ["0", "1"])
def test_search_finds_lines_at_the_first_address_that_shows_them(client: FlaskClient, stored: str, regex: str) -> None:
    assert hits(client, stored, "visible", regex=regex) == [("ptx", 2, ".visible .entry scale()")]
    assert hits(client, stored, "@triton", regex=regex) == [("source", 4, "@triton.jit")]
    found = hits(client, stored, "tt.load", regex=regex)
    assert found[0][0] == "ttir:0"
    assert len({(line, text) for address, line, text in found if address == "ttir:0"}) == len(
        [address for address, _, _ in found if address == "ttir:0"]
    )


def test_search_agrees_with_the_text(client: FlaskClient, built: Built, stored: str) -> None:
    text = built.blobs[text_of(built, "ttir:0")].decode().split("\n")
    expected = [number for number, line in enumerate(text, 1) if "arith" in line]
    assert [line for address, line, _ in hits(client, stored, "arith") if address == "ttir:0"] == expected
    pattern = r"arith\.\w+ "
    assert [line for address, line, _ in hits(client, stored, pattern, regex="1") if address == "ttir:0"]


@pytest.mark.parametrize("query", ["\0", "--help", "\ud800", "[[a]", "é", "\n"])
@pytest.mark.parametrize("regex", ["0", "1"])
def test_odd_queries_find_nothing_and_break_nothing(client: FlaskClient, stored: str, query: str, regex: str) -> None:
    escaped = query.encode("utf-8", errors="surrogatepass")
    answer = client.get(f"/api/v1/traces/{stored}/search", query_string={"q": escaped, "regex": regex})
    assert answer.status_code == 200
    assert isinstance(answer.get_json()["hits"], list)


def test_search_heeds_case_only_where_the_query_does(client: FlaskClient, stored: str) -> None:
    assert hits(client, stored, "exit") == hits(client, stored, "EXIT")
    assert hits(client, stored, "Exit") == []


def test_search_shows_sass_without_encodings(client: FlaskClient, stored: str) -> None:
    assert hits(client, stored, "0x00000a0000017a02") == []
    assert [(address, line) for address, line, _ in hits(client, stored, "EXIT")] == [("sass", 3)]


@pytest.mark.parametrize("query", ["(", "[a-", "a{99999999999}", "(?P<x>"])
def test_malformed_expression_is_refused(client: FlaskClient, stored: str, query: str) -> None:
    answer = client.get(f"/api/v1/traces/{stored}/search", query_string={"q": query, "regex": "1"})
    assert answer.status_code == 422
    assert "not a regular expression" in error_of(answer)["message"]


@pytest.mark.parametrize("query", ["", "x" * 501])
def test_search_query_is_bounded(client: FlaskClient, stored: str, query: str) -> None:
    assert client.get(f"/api/v1/traces/{stored}/search", query_string={"q": query}).status_code == 422


def test_backtracking_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SECONDS", 0.6)
    texts = [("ttir:0", b"found\nfirst"), ("ttir:1", b"a" * 64)]
    start = time.monotonic()
    found = search.expression(texts, r"found|^(a+)+b$")
    assert time.monotonic() - start < 5
    assert found.truncated
    assert [hit.address for hit in found.hits] == ["ttir:0"]


def test_hits_lines_and_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    many = b"\n".join([b"needle"] * 2000)
    for find in (search.words, search.expression):
        found = find([("ttir:0", many)], "needle")
        assert (len(found.hits), found.truncated) == (search.MAX_HITS, True)
        (hit,) = find([("ttir:0", b"needle" + bytes(10_000))], "needle").hits
        assert len(hit.text) == search.MAX_LINE
        assert find([], "needle") == search.Found((), truncated=False)
        assert find([("ttir:0", b""), ("ttir:1", b"needle")], "needle").hits == (search.Hit("ttir:1", 1, "needle"),)
    monkeypatch.setattr(search, "MAX_BYTES", 100)
    for find in (search.words, search.expression):
        assert find([("ttir:0", b"needle"), ("ttir:1", bytes(100))], "needle").truncated


def test_search_that_runs_out_of_memory_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    child = tmp_path / "child.py"
    child.write_text(search.CHILD.read_text().replace("MEMORY = 4 << 30", "MEMORY = 100 << 20"))
    monkeypatch.setattr(search, "CHILD", child)
    assert search.expression([("ttir:0", b"y\n" * (20 << 20))], "needle").truncated


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "import os; os.abort()", "import os; os.kill(os.getpid(), 9)"])
def test_any_other_end_of_the_child_means_truncated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    child = tmp_path / "child.py"
    child.write_text(f"print('[0, 1, \"first\"]', flush=True)\n{code}\n")
    monkeypatch.setattr(search, "CHILD", child)
    found = search.expression([("ttir:0", b"first")], "first")
    assert found == search.Found((search.Hit("ttir:0", 1, "first"),), truncated=True)


def test_words_find_every_line_once() -> None:
    text = b"ab ab\n\nab\nxabx\nb"
    assert search.words([("s", text)], "ab").hits == (
        search.Hit("s", 1, "ab ab"),
        search.Hit("s", 3, "ab"),
        search.Hit("s", 4, "xabx"),
    )


def test_search_of_a_long_text_is_quick(client: FlaskClient, built: Built) -> None:
    ptx = b"\n".join(b"\tadd.s32 %%r%d, %%r0, 1;" % number for number in range(200_000))
    digest = tracefile.digest(ptx)
    artifacts = (built.manifest.artifacts[0].model_copy(update={"digest": digest}), *built.manifest.artifacts[1:])
    manifest = built.manifest.model_copy(update={"artifacts": artifacts})
    stored = upload(client, Built(manifest, {**built.blobs, digest: ptx}))
    assert hits(client, stored, "%r199999,") == [("ptx", 200_000, "\tadd.s32 %r199999, %r0, 1;")]
