"""Packages and installed modules through the API: submission, keys, stored requests, zips."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import jobs
from app.models import Group, Trace
from app.services import Services
from pipelines.kernels.archive import MAX_ARCHIVE_BYTES
from pipelines.trace import SourceFile, digest
from tests.app.helpers import Built, upload
from tests.pipelines.triton_path.test_packages import PACKAGE

BODY: dict[str, Any] = {"files": PACKAGE, "file": "pkg/ops/norm.py", "targets": ["sm_90"]}


def claimed(services: Services, trace_id: str) -> jobs.Job:
    with services.database.write() as session:
        job = jobs.claim(session, trace_id, "worker")
    assert job
    return job


def key_of(client: FlaskClient, services: Services, body: dict[str, Any]) -> str:
    trace = client.post("/api/v1/compiles", json=body).get_json()["traces"][0]
    with services.database.read() as session:
        key = session.get_one(Trace, trace).compile_key
    assert key
    return key


def test_a_package_is_stored_whole_and_compiled_whole(client: FlaskClient, services: Services):
    answer = client.post("/api/v1/compiles", json=BODY)
    assert answer.status_code == 202, answer.get_json()
    spec = claimed(services, answer.get_json()["traces"][0]).spec
    assert (spec.file, spec.source) == ("pkg/ops/norm.py", PACKAGE["pkg/ops/norm.py"])
    assert {**spec.files, spec.file: spec.source} == PACKAGE
    with services.database.read() as session:
        trace = session.get_one(Trace, answer.get_json()["traces"][0])
        request = session.get_one(Group, trace.group_id).request
    assert "files" not in trace.spec
    assert {**request["files"], request["file"]: request["source"]} == PACKAGE


def test_the_file_to_start_with_is_found_where_only_one_can_be(client: FlaskClient, services: Services):
    files = {"pkg/util.py": "X = 1\n", "pkg/ops/kernels.py": PACKAGE["pkg/ops/kernels.py"]}
    answer = client.post("/api/v1/compiles", json={"files": files})
    assert claimed(services, answer.get_json()["traces"][0]).spec.file == "pkg/ops/kernels.py"
    both = client.post("/api/v1/compiles", json={"files": {"a.py": "", "b.py": ""}})
    assert both.status_code == 422
    assert "say which file to start with: a.py, b.py" in both.get_json()["error"]["message"]


def test_every_file_is_in_the_compile_key(client: FlaskClient, services: Services, ready_worker: str):
    assert ready_worker
    known = {key_of(client, services, BODY)}
    assert key_of(client, services, BODY) in known
    for path, text in PACKAGE.items():
        known.add(key_of(client, services, {**BODY, "files": {**PACKAGE, path: text + "#\n"}}))
    known.add(key_of(client, services, {**BODY, "files": {**PACKAGE, "pkg/new.py": ""}}))
    known.add(key_of(client, services, {**BODY, "file": "pkg/ops/kernels.py"}))
    assert len(known) == 6


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"files": {"../up.py": ""}}, "'../up.py' is no path"),
        ({"files": {"/etc/x.py": ""}}, "is no path"),
        ({"files": {"a.py": "", "a.txt": ""}}, "'a.txt' is no path"),
        ({"files": {"stdout/a.py": ""}}, "cannot be named stdout"),
        ({"files": {}}, "files"),
        ({"files": {f"f{n}.py": "" for n in range(257)}}, "files"),
        ({"files": {f"f{n}.py": "x" * (1 << 20) for n in range(5)}}, "4 MB of text"),
        ({"files": {"a.py": "x" * ((1 << 20) + 1)}}, "more than 1 MB"),
        ({"files": {"a.py": ""}, "file": "b.py"}, "no 'b.py' among the files"),
        ({"files": {"a.py": ""}, "source": "x"}, "one of them"),
        ({"files": {"a.py": ""}, "module": "triton.language"}, "one of them"),
        ({"module": "nolib.ops"}, "no library nolib is installed"),
        ({"module": "../../etc/passwd"}, "no module's name"),
        ({"module": "triton.language", "file": "a.py"}, "a module's file is known"),
        ({}, "give the kernel's source"),
    ],
)
def test_what_is_no_package_is_refused_in_words(client: FlaskClient, body: dict[str, Any], words: str):
    answer = client.post("/api/v1/compiles", json=body)
    assert answer.status_code == 422
    assert words in answer.get_json()["error"]["message"]


def test_a_module_is_read_where_it_is_installed(client: FlaskClient, services: Services):
    answer = client.post("/api/v1/compiles", json={"module": "triton.language.standard"})
    spec = claimed(services, answer.get_json()["traces"][0]).spec
    assert (spec.file, spec.module) == ("triton/language/standard.py", "triton.language.standard")
    assert "def cdiv" in spec.source
    edited = client.post("/api/v1/compiles", json={"module": "triton.language.standard", "source": "x = 1\n"})
    assert claimed(services, edited.get_json()["traces"][0]).spec.source == "x = 1\n"


def test_an_installed_module_can_be_read(client: FlaskClient):
    told = client.get("/api/v1/modules/triton.language.standard").get_json()
    assert told["file"] == "triton/language/standard.py"
    assert "def cdiv" in told["source"]
    for name in ("nolib", "triton.none", "..", "triton/../app"):
        assert client.get(f"/api/v1/modules/{name}").status_code == 404


def test_kernels_of_a_package_are_found_in_all_its_files(client: FlaskClient):
    body = {"files": PACKAGE, "file": "pkg/ops/norm.py"}
    found = client.post("/api/v1/kernels", json=body).get_json()
    told = {kernel["name"]: (kernel["launched"], kernel["helper"]) for kernel in found["kernels"]}
    assert told == {"scale": (True, False), "square": (False, True)}
    assert found["launches"]
    broken = {**PACKAGE, "pkg/util.py": "import triton\n@triton.jit\ndef f(:\n"}
    fault = client.post("/api/v1/kernels", json={**body, "files": broken}).get_json()["error"]
    assert fault["message"].startswith("pkg/util.py:3: ")
    assert client.post("/api/v1/kernels", json={**body, "source": ""}).status_code == 422
    assert client.post("/api/v1/kernels", json={}).status_code == 422
    assert client.post("/api/v1/kernels", json={"files": {"../a.py": ""}}).status_code == 422


def zipped(members: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in members.items():
            made.writestr(name, text)
    return out.getvalue()


def test_a_zip_becomes_files_that_can_be_compiled(client: FlaskClient):
    data = zipped({**{f"repo-main/{path}": text for path, text in PACKAGE.items()}, "repo-main/README.md": "#"})
    answer = client.post("/api/v1/packages", data=data, content_type="application/zip")
    assert answer.status_code == 200
    told = answer.get_json()
    assert told["files"] == PACKAGE
    assert told["candidates"] == ["pkg/ops/norm.py", "pkg/ops/kernels.py", "pkg/util.py"]
    assert (told["skipped"], told["skipped_count"]) == (["repo-main/README.md"], 1)


def test_a_zip_that_is_none_is_refused(client: FlaskClient):
    for data, status in ((b"x", 422), (zipped({"../a.py": ""}), 422), (bytes(MAX_ARCHIVE_BYTES + 1), 413)):
        answer = client.post("/api/v1/packages", data=data, content_type="application/zip")
        assert answer.status_code == status
        assert answer.get_json()["error"]["message"]
    assert client.post("/api/v1/packages", data=b"x", content_type="text/plain").status_code == 415
    origin = {"Origin": "http://elsewhere.example"}
    stranger = client.post(
        "/api/v1/packages", data=zipped({"a.py": ""}), headers=origin, content_type="application/zip"
    )
    assert stranger.status_code == 403


@pytest.fixture
def stored_package(client: FlaskClient, built: Built) -> str:
    """A trace whose source has a second file."""
    text = PACKAGE["pkg/util.py"].encode()
    more = {"file": "pkg/norm.py", "files": (SourceFile(name="pkg/util.py", digest=digest(text)),)}
    manifest = built.manifest.model_copy(update={"kernel": built.manifest.kernel.model_copy(update=more)})
    return upload(client, Built(manifest, {**built.blobs, digest(text): text}))


def test_every_file_of_a_trace_can_be_read(client: FlaskClient, stored_package: str):
    base = f"/api/v1/traces/{stored_package}"
    told = client.get(f"{base}/passes/source:pkg/util.py").get_json()
    assert (told["ir"], told["syntax"]) == (PACKAGE["pkg/util.py"], "python")
    assert client.get(f"{base}/texts/{told['text']}").text == PACKAGE["pkg/util.py"]
    assert client.get(f"{base}/passes/source:pkg/none.py").status_code == 404
    hits = client.get(f"{base}/search?q=def square").get_json()["hits"]
    assert [(hit["address"], hit["line"]) for hit in hits] == [("source:pkg/util.py", 6)]


def test_the_page_lists_the_files_and_shows_each(client: FlaskClient, stored_package: str):
    page = client.get(f"/t/{stored_package}?pass=source:pkg/util.py")
    assert page.status_code == 200
    assert 'data-address="source:pkg/util.py" data-file="pkg/util.py" aria-current="page"' in page.text
    assert 'data-file="pkg/norm.py">' in page.text
    assert "square" in page.text
    assert client.get(f"/t/{stored_package}?pass=source:none.py").status_code == 404
