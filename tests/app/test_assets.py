import gzip

import pytest
from flask.testing import FlaskClient

from app.assets import DIST, assets


def test_a_script_travels_compressed(client: FlaskClient) -> None:
    name = assets.file("trace.js")
    with (
        client.get(f"/static/{name}") as plain,
        client.get(f"/static/{name}", headers={"Accept-Encoding": "gzip"}) as zipped,
    ):
        assert "Content-Encoding" not in plain.headers
        assert zipped.headers["Content-Encoding"] == "gzip"
        assert zipped.mimetype == plain.mimetype
        assert gzip.decompress(zipped.data) == plain.data == (DIST / name).read_bytes()
        for answer in (plain, zipped):
            assert answer.headers["Vary"] == "Accept-Encoding"
            assert "immutable" in answer.headers["Cache-Control"]


def test_a_font_travels_as_it_is(client: FlaskClient) -> None:
    name = next(path.name for path in DIST.glob("*.woff2"))
    with client.get(f"/static/{name}", headers={"Accept-Encoding": "gzip, zstd"}) as answer:
        assert "Content-Encoding" not in answer.headers
        assert answer.mimetype == "font/woff2"
    assert client.get("/static/../app/config.py").status_code == 404


@pytest.mark.parametrize(
    ("accept", "encoding"),
    [("zstd", None), ("gzip", "gzip"), ("br, zstd, gzip;q=0.5", "gzip"), ("zstd, gzip;q=0", None), ("identity", None)],
)
def test_script_comes_only_as_the_client_takes_it(client: FlaskClient, accept: str, encoding: str | None) -> None:
    with client.get(f"/static/{assets.file('trace.js')}", headers={"Accept-Encoding": accept}) as answer:
        assert answer.headers.get("Content-Encoding") == encoding


def test_only_names_with_a_hash_are_kept_for_good(client: FlaskClient) -> None:
    names = [path.name for path in DIST.iterdir() if path.suffix != ".gz" and not path.name.startswith(".")]
    assert "manifest.json" in names
    for name in names:
        with client.get(f"/static/{name}") as answer:
            assert ("immutable" in answer.headers["Cache-Control"]) == (name != "manifest.json"), name
            assert answer.headers["ETag"]
