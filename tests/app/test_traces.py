import re
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import uploads
from app.models import Group, Trace
from app.services import Services
from app.uploads import MAX_UPLOAD_BYTES
from pipelines import tracefile
from pipelines.trace import Manifest
from pipelines.tracefile import TraceFile
from tests.app.helpers import BROKEN, CUBIN, PTX, Built, compile_body, damage, error_of, upload


def test_uploaded_trace_is_told_whole(client: FlaskClient, built: Built, stored: str) -> None:
    told = client.get(f"/api/v1/traces/{stored}").get_json()
    assert told["id"] == stored
    assert told["url"] == f"/t/{stored}"
    assert (told["status"], told["kernel"], told["target"]) == ("ok", "scale", "sm_80")
    assert told["content"] == built.manifest.content
    assert told["manifest"] == built.manifest.model_dump(mode="json", by_alias=True)
    assert (told["group"], told["cached"], told["pending"], told["failure"]) == (None, False, [], None)
    rows = told["summary"]["rows"]
    assert next(iter(rows)) == "ttir:0"
    assert {"ptx", "sass"} < set(rows)
    assert rows["sass"]["lines"] == 3


def test_page_and_twin_are_the_same_trace(client: FlaskClient, stored: str) -> None:
    twin = client.get(f"/t/{stored}.json").get_json()
    del twin["view"]
    assert twin == client.get(f"/api/v1/traces/{stored}").get_json()
    page = client.get(f"/t/{stored}")
    assert page.status_code == 200
    assert "scale" in page.text


def test_finished_trace_is_sent_once(client: FlaskClient, stored: str) -> None:
    first = client.get(f"/api/v1/traces/{stored}")
    again = client.get(f"/api/v1/traces/{stored}", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
def test_trace_is_compressed_as_the_client_takes_it(client: FlaskClient, stored: str, encoding: str) -> None:
    plain = client.get(f"/api/v1/traces/{stored}")
    packed = client.get(f"/api/v1/traces/{stored}", headers={"Accept-Encoding": encoding})
    assert packed.headers["Content-Encoding"] == encoding
    assert len(packed.data) < len(plain.data) / 2
    assert packed.headers["ETag"] != plain.headers["ETag"]
    assert "Accept-Encoding" in packed.headers["Vary"]


@pytest.mark.parametrize("path", ["/t/{}", "/t/{}.json", "/api/v1/traces/{}", "/api/v1/traces/{}/events"])
@pytest.mark.parametrize("trace", ["nothing", "x" * 22, "x" * 2000, "%00", "..%2f..%2fetc"])
def test_unknown_trace_is_not_found(client: FlaskClient, path: str, trace: str) -> None:
    assert client.get(path.format(trace)).status_code == 404


def test_pass_is_told_by_its_address(client: FlaskClient, built: Built, stored: str) -> None:
    told = client.get(f"/api/v1/traces/{stored}/passes/ttir:1").get_json()
    item = built.manifest.stage("ttir").passes[0]
    assert (told["name"], told["argument"], told["text"]) == (item.name, item.argument, item.text)
    text = built.blobs[item.text or ""]
    assert (told["lines"], told["bytes"], told["syntax"]) == (text.count(b"\n") + 1, len(text), "mlir")
    assert told["ir"].encode() == text
    told = {name: client.get(f"/api/v1/traces/{stored}/passes/{name}").get_json() for name in ("ptx", "sass", "cubin")}
    assert (told["ptx"]["syntax"], told["ptx"]["ir"]) == ("ptx", PTX.decode())
    assert "/* 0x" not in told["sass"]["ir"]
    assert (told["cubin"]["ir"], told["cubin"]["bytes"]) == (None, len(CUBIN))


def test_long_text_is_told_by_its_digest_alone(client: FlaskClient, built: Built) -> None:
    for size, inline in ((1 << 20, True), ((1 << 20) + 1, False)):
        ptx = b"\t" * size
        digest = tracefile.digest(ptx)
        artifacts = (built.manifest.artifacts[0].model_copy(update={"digest": digest}), *built.manifest.artifacts[1:])
        manifest = built.manifest.model_copy(update={"artifacts": artifacts})
        stored = upload(client, Built(manifest, {**built.blobs, digest: ptx}))
        told = client.get(f"/api/v1/traces/{stored}/passes/ptx").get_json()
        assert (told["text"], told["bytes"], told["ir"] is not None) == (digest, size, inline)


def test_twin_shows_what_the_page_shows(client: FlaskClient, built: Built, stored: str) -> None:
    def view(query: str) -> dict[str, Any]:
        found: dict[str, Any] = client.get(f"/t/{stored}.json?{query}").get_json()["view"]
        return found

    text_of = built.manifest.resolve
    told = view("pass=ttir:2&against=ttir:0&view=unified")
    assert (told["address"], told["against"], told["mode"]) == ("ttir:2", "ttir:0", "unified")
    assert told["text"] == text_of("ttir:2").text
    assert told["diff"] == client.get(f"/api/v1/traces/{stored}/diff?from=ttir:0&to=ttir:2").get_json()
    told = view("pass=ptx")
    assert (told["mode"], told["text"], told["diff"]) == ("text", text_of("ptx").text, None)
    assert view("pass=cubin&against=ptx")["diff"] is None
    first = view("")
    assert (first["mode"], first["diff"]["to"]["address"]) == ("diff", first["address"])
    missing = client.get(f"/t/{stored}.json?pass=ttir:99")
    assert missing.status_code == 404
    assert "there is no ttir:99" in missing.get_json()["view"]["error"]["message"]


@pytest.mark.parametrize("address", ["ttir:99", "ttgir:1", "nothing", "ttir:-1", "ttir:1:2"])
def test_unknown_address_is_not_found(client: FlaskClient, stored: str, address: str) -> None:
    answer = client.get(f"/api/v1/traces/{stored}/passes/{address}")
    assert answer.status_code == 404
    assert error_of(answer)["code"] == "not_found"
    assert client.get(f"/t/{stored}?pass={address}").status_code == 404


def test_file_comes_back_byte_for_byte(client: FlaskClient, built: Built, stored: str) -> None:
    with client.get(f"/api/v1/traces/{stored}/file") as answer:
        assert answer.data == built.data
        assert answer.headers["Content-Disposition"] == "attachment; filename=scale-sm_80.loupe"


def test_file_name_is_safe_whatever_the_kernel_is_called(client: FlaskClient, built: Built) -> None:
    kernel = built.manifest.kernel.model_copy(update={"name": '../"\r\nX: y'})
    stored = upload(client, replace(built, manifest=built.manifest.model_copy(update={"kernel": kernel})))
    with client.get(f"/api/v1/traces/{stored}/file") as answer:
        assert answer.headers["Content-Disposition"] == "attachment; filename=______X__y-sm_80.loupe"
        assert TraceFile(answer.data).manifest.kernel.name == kernel.name


def test_each_upload_has_a_permalink_of_its_own(client: FlaskClient, built: Built) -> None:
    first, second = upload(client, built), upload(client, built)
    assert first != second
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", link) for link in (first, second))


def damaged(data: bytes, kind: str) -> bytes:
    if kind == "cut":
        return data[: len(data) // 2]
    if kind == "flipped":
        return data[:-20] + bytes([data[-20] ^ 255]) + data[-19:]
    return {"empty": b"", "zip": b"PK\x03\x04" + bytes(100), "pickle": b"\x80\x04\x95" + bytes(50)}[kind]


@pytest.mark.parametrize("kind", ["cut", "flipped", "empty", "zip", "pickle"])
def test_damaged_upload_is_refused_and_leaves_nothing(
    client: FlaskClient, services: Services, built: Built, kind: str
) -> None:
    answer = client.post("/api/v1/traces", data=damaged(built.data, kind), content_type="application/octet-stream")
    assert answer.status_code == 422
    assert "not a sound trace" in error_of(answer)["message"]
    assert list(services.settings.uploads.iterdir()) == []
    assert [path for path in services.settings.blobs.rglob("*") if path.is_file()] == []


def test_upload_is_bounded_while_it_arrives(
    client: FlaskClient, services: Services, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_UPLOAD_BYTES == 512 << 20
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 1000)
    answer = client.post("/api/v1/traces", data=built.data, content_type="application/octet-stream")
    assert answer.status_code == 413
    assert list(services.settings.uploads.iterdir()) == []


def test_large_manifest_is_refused_before_it_is_parsed(
    client: FlaskClient, services: Services, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert uploads.MAX_UPLOAD_MANIFEST == 8 << 20
    options = {f"o{number}": "x" * 100_000 for number in range(90)}
    large = built.manifest.model_copy(update={"options": options})
    data = tracefile.write(large, built.blobs)
    assert len(data) < 100_000
    monkeypatch.setattr(Manifest, "parse", lambda _: pytest.fail("it was parsed"))
    answer = client.post("/api/v1/traces", data=data, content_type="application/octet-stream")
    assert answer.status_code == 413
    assert "8 MB of JSON; an upload may have 8 MB" in error_of(answer)["message"]
    assert list(services.settings.uploads.iterdir()) == []


def test_upload_never_answers_for_a_compilation(
    client: FlaskClient, services: Services, built: Built, ready_worker: str
) -> None:
    upload(client, built)
    made = client.post("/api/v1/compiles", json=compile_body()).get_json()
    with services.database.read() as session:
        trace = session.get_one(Trace, made["traces"][0])
        uploaded = session.query(Trace).filter(Trace.group_id.is_(None)).one()
    assert ready_worker
    assert (trace.status, trace.content) == ("queued", None)
    assert (uploaded.compile_key, uploaded.cacheable) == (None, False)


def into(client: FlaskClient, built: Built, group: str) -> TestResponse:
    path = f"/api/v1/traces?group={group}"
    return client.post(path, data=built.data, content_type="application/octet-stream")


def test_uploads_make_a_group(client: FlaskClient, built: Built) -> None:
    first = into(client, built, "new").get_json()
    second = into(client, built, first["group"]).get_json()
    other = into(client, built, "new").get_json()
    assert first["group"] == second["group"] != other["group"]
    members = client.get(f"/api/v1/groups/{first['group']}").get_json()["traces"]
    assert [member["id"] for member in members] == [first["id"], second["id"]]
    assert client.get(f"/g/{first['group']}").status_code == 200
    assert client.post("/api/v1/traces", data=built.data, content_type="x/y").get_json()["group"] is None


def test_upload_into_what_is_no_group_for_uploads_is_refused(
    client: FlaskClient, services: Services, built: Built, ready_worker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ready_worker
    for unknown in ("nowhere", "x" * 22, "..%2F"):
        answer = into(client, built, unknown)
        assert answer.status_code == 422
        assert error_of(answer)["detail"] == {"in": "query", "field": "group"}
    compiled = client.post("/api/v1/compiles", json=compile_body()).get_json()["group"]
    assert into(client, built, compiled).status_code == 409
    monkeypatch.setattr(uploads, "MAX_GROUP", 1)
    full = into(client, built, "new").get_json()["group"]
    assert into(client, built, full).status_code == 409
    assert list(services.settings.uploads.iterdir()) == []


def test_old_files_stay_readable_after_a_restart(client: FlaskClient, services: Services, stored: str) -> None:
    path = services.blobs.path(client.get(f"/api/v1/traces/{stored}").get_json()["content"])
    assert TraceFile.open(path).manifest.kernel.name == "scale"


def lines(page: str) -> list[tuple[str, str]]:
    found = re.findall(r'<div class="line" data-kind="(\w+)".*?<code>(.*?)</code></div>', page)
    return [(kind, re.sub(r"<[^>]+>", "", text)) for kind, text in found]


def test_page_without_scripts_shows_the_text(client: FlaskClient, stored: str) -> None:
    page = client.get(f"/t/{stored}?pass=ptx").text
    assert [text for _, text in lines(page)] == PTX.decode().split("\n")
    source = client.get(f"/t/{stored}?pass=source").text
    assert "@triton.jit" in [text for _, text in lines(source)]
    assert 'class="' in re.search(r"<code>.*@triton", source)[0]  # type: ignore[index]  # found above


def test_page_without_scripts_shows_the_change(client: FlaskClient, stored: str) -> None:
    told = client.get(f"/api/v1/traces/{stored}").get_json()
    address, row = next((address, row) for address, row in told["summary"]["rows"].items() if row["changed"])
    shown = lines(client.get(f"/t/{stored}?pass={address}").text)
    kinds = [kind for kind, _ in shown]
    assert (kinds.count("add"), kinds.count("del")) == (row["plus"], row["minus"])
    assert shown == lines(client.get(f"/t/{stored}").text)


def test_page_for_scripts_leaves_the_text_out(client: FlaskClient, stored: str) -> None:
    client.set_cookie("scripted", "1")
    assert lines(client.get(f"/t/{stored}?pass=ptx").text) == []


def test_long_text_comes_in_windows(client: FlaskClient, built: Built) -> None:
    ptx = b"\n".join(b"\tadd.s32 %%r%d, %%r0, 1;" % number for number in range(1, 4501))
    blobs = {**built.blobs}
    digest = tracefile.digest(ptx)
    blobs[digest] = ptx
    artifacts = (built.manifest.artifacts[0].model_copy(update={"digest": digest}), *built.manifest.artifacts[1:])
    stored = upload(client, Built(built.manifest.model_copy(update={"artifacts": artifacts}), blobs))

    def window(start: int) -> list[str]:
        return [text for _, text in lines(client.get(f"/t/{stored}?pass=ptx&from={start}").text)]

    parts = [window(start) for start in (1, 2001, 4001)]
    assert [len(part) for part in parts] == [2000, 2000, 500]
    assert "\n".join(line for part in parts for line in part) == ptx.decode()
    assert window(999_999) == parts[2]


@pytest.mark.parametrize(
    "query", ["view=nonsense", "from=0", "from=x", "tab=", "pass=", "unknown=1", "from=" + "9" * 50]
)
def test_page_forgives_a_mistyped_address(client: FlaskClient, stored: str, query: str) -> None:
    assert client.get(f"/t/{stored}?{query}").status_code == 200


def test_binary_artifact_is_sent_as_bytes(client: FlaskClient, built: Built, stored: str) -> None:
    cubin = built.manifest.artifact("cubin")
    assert cubin
    answer = client.get(f"/api/v1/traces/{stored}/texts/{cubin.digest}")
    assert answer.mimetype == "application/octet-stream"
    assert answer.data == CUBIN
    assert client.get(f"/t/{stored}?pass=cubin").status_code == 200


def test_failed_trace_opens_at_the_last_ir(client: FlaskClient, failed: Built) -> None:
    stored = upload(client, failed)
    told: dict[str, Any] = client.get(f"/api/v1/traces/{stored}").get_json()
    assert told["status"] == "failed"
    assert told["failure"]["message"] == "no"
    page = client.get(f"/t/{stored}")
    assert page.status_code == 200
    assert "no" in page.text


def test_hostile_names_are_escaped(client: FlaskClient, built: Built) -> None:
    kernel = built.manifest.kernel.model_copy(update={"name": "<script>alert(1)</script>"})
    stored = upload(client, replace(built, manifest=built.manifest.model_copy(update={"kernel": kernel})))
    for path in (f"/t/{stored}", "/"):
        assert "<script>alert" not in client.get(path).text


PATHS = ["/t/{}", "/t/{}.json", "/api/v1/traces/{}", "/api/v1/traces/{}/file", "/api/v1/traces/{}/passes/ttir:1"]


@pytest.mark.parametrize("kind", ["missing", "other", *BROKEN])
def test_damaged_file_is_said_to_be_damaged_and_what_to_do(
    client: FlaskClient, services: Services, built: Built, stored: str, kind: str
) -> None:
    damage(services, built, kind)
    for path in PATHS:
        answer = client.get(path.format(stored), headers={"Accept": "application/json"})
        error = error_of(answer)
        assert (answer.status_code, error["code"]) == (500, "damaged"), path
        assert "upload the file" in error["message"]
        assert str(services.settings.home) not in error["message"]
    assert client.get(f"/t/{stored}").mimetype == "text/html"


def test_damaged_text_is_said_to_be_damaged(client: FlaskClient, services: Services, built: Built, stored: str) -> None:
    damage(services, built, "text")
    sass, ptx = (built.manifest.resolve(name).text for name in ("sass", "ptx"))
    assert client.get(f"/api/v1/traces/{stored}/texts/{ptx}").status_code == 200
    for path in (f"texts/{sass}", f"texts/{sass}?raw=1", "diff?from=ptx&to=sass", "passes/sass", "search?q=EXIT"):
        answer = client.get(f"/api/v1/traces/{stored}/{path}")
        assert (answer.status_code, error_of(answer)["code"]) == (500, "damaged"), path
    upload(client, built)
    assert client.get(f"/api/v1/traces/{stored}/texts/{sass}").status_code == 200


@pytest.mark.parametrize("kind", ["missing", "text", "other", *BROKEN])
def test_damaged_trace_leaves_the_lists_that_show_it(
    client: FlaskClient, services: Services, built: Built, failed: Built, kind: str
) -> None:
    with services.database.write() as session:
        group = Group(request={"source": "", "targets": ["sm_80"]})
        session.add(group)
        session.flush()
        for variant, trace in enumerate((built, failed)):
            services.blobs.put(trace.manifest.content, trace.data)
            content, status = trace.manifest.content, trace.manifest.status
            session.add(Trace(group_id=group.id, variant=variant, status=status, target="sm_80", content=content))
    damage(services, built, kind)
    recent = client.get("/index.json").get_json()["recent"]
    damages = sorted(bool(trace["damage"]) for trace in recent)
    assert damages == [False, kind != "text"]
    assert client.get("/").status_code == 200
    assert client.get(f"/g/{group.id}").status_code == 200
    told = client.get(f"/api/v1/groups/{group.id}").get_json()["traces"]
    assert [bool(trace["damage"]) for trace in told] == [kind != "text", False]
    assert client.get(f"/g/{group.id}.json").get_json()["comparison"]


def test_trace_being_compiled_has_a_page(client: FlaskClient) -> None:
    made = client.post("/api/v1/compiles", json=compile_body()).get_json()
    told = client.get(f"{made['url']}.json").get_json()
    assert (told["status"], told["manifest"], told["summary"]) == ("queued", None, None)
    assert client.get(made["url"]).status_code == 200
    assert client.get(f"/api/v1/traces/{told['id']}/file").status_code == 409
    assert client.get(f"/api/v1/traces/{told['id']}/passes/ttir:1").status_code == 409
