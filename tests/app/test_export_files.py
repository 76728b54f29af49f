import io
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from app.export_files import contents, files, zipped
from app.models import Group, Trace
from app.services import Services
from pipelines.trace import SourceFile, digest
from pipelines.tracefile import TraceFile
from tests.app.helpers import SOURCE, Built, damage, error_of, loupe


def entries(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(set(names)) == len(names)
        return {name: archive.read(name) for name in names}


def test_zip_folder_and_api_hold_the_same_files(client: FlaskClient, stored: str, file: Path, tmp_path: Path) -> None:
    folder, archive = tmp_path / "out", tmp_path / "new" / "out.zip"
    assert loupe("export", file, "--dir", folder, "--zip", archive).exit_code == 0
    written = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert entries(archive.read_bytes()) == written
    answer = client.get(f"/api/v1/traces/{stored}/export.zip")
    assert answer.mimetype == "application/zip"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="scale-sm_80.zip"'
    assert answer.data == archive.read_bytes()
    again = client.get(f"/api/v1/traces/{stored}/export.zip", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_a_package_s_other_files_are_there(built: Built) -> None:
    sources = {f"ops/{name}.py": f"# {name}\n".encode() for name in ("norm", "../norm")}
    named = tuple(SourceFile(name=name, digest=digest(data)) for name, data in sources.items())
    kernel = built.manifest.kernel.model_copy(update={"files": named})
    manifest = built.manifest.model_copy(update={"kernel": kernel})
    data = replace(built, manifest=manifest, blobs=built.blobs | {digest(item): item for item in sources.values()}).data
    found = entries(b"".join(zipped(contents(TraceFile(data)))))
    assert found["package/001-ops-norm.py"] == b"# norm\n"
    assert found["package/002-ops-norm.py"] == b"# ../norm\n"
    assert found["kernel.py"] == SOURCE
    assert set(found) == {"manifest.json", *(name for name, _ in files(manifest))}


def test_a_zip_holds_one_file_at_a_time() -> None:
    members = ((f"{number}.mlir", bytes([number]) * (4 << 20)) for number in range(12))
    tracemalloc.start()
    try:
        size = sum(len(part) for part in zipped(members))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 0
    assert peak < 20 << 20


def grouped(services: Services, built: Built, statuses: list[str]) -> str:
    with services.database.write() as session:
        group = Group(request={"targets": ["sm_80"]})
        session.add(group)
        session.flush()
        for variant, status in enumerate(statuses):
            content = built.manifest.content if status == "ok" else None
            session.add(
                Trace(
                    group_id=group.id, status=status, kernel="scale", target="sm_80", variant=variant, content=content
                )
            )
        found: str = group.id
    return found


@pytest.mark.usefixtures("stored")
def test_a_group_is_one_zip_with_a_folder_each(client: FlaskClient, services: Services, built: Built) -> None:
    group = grouped(services, built, ["ok", "failed", "ok"])
    found = entries(client.get(f"/api/v1/groups/{group}/export.zip").data)
    assert {name.partition("/")[0] for name in found} == {"01-scale-sm_80", "02-scale-sm_80"}
    assert found["02-scale-sm_80/kernel.py"] == SOURCE


def test_a_group_without_a_finished_trace_has_nothing_to_export(
    client: FlaskClient, services: Services, built: Built
) -> None:
    answer = client.get(f"/api/v1/groups/{grouped(services, built, ['failed'])}/export.zip")
    assert (answer.status_code, error_of(answer)["code"]) == (409, "conflict")


@pytest.mark.parametrize("kind", ["html", "zip", "md"])
def test_an_unfinished_trace_has_nothing_to_export(client: FlaskClient, services: Services, kind: str) -> None:
    with services.database.write() as session:
        trace = Trace(status="queued", kernel="scale", target="sm_80")
        session.add(trace)
        session.flush()
        trace_id = trace.id
    answer = client.get(f"/api/v1/traces/{trace_id}/export.{kind}")
    assert (answer.status_code, error_of(answer)["code"]) == (409, "conflict")
    assert client.get(f"/api/v1/traces/{'x' * 22}/export.{kind}").status_code == 404


@pytest.mark.parametrize("kind", ["html", "zip", "md"])
def test_a_damaged_trace_is_told(client: FlaskClient, services: Services, built: Built, stored: str, kind: str) -> None:
    damage(services, built, "cut")
    answer = client.get(f"/api/v1/traces/{stored}/export.{kind}")
    assert (answer.status_code, error_of(answer)["code"]) == (500, "damaged")
