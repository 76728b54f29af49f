"""Recordings are hostile: whatever a folder holds is a trace or a refusal in words, and nothing outside it is read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines import tracefile
from pipelines.tracefile import TraceFile
from pipelines.triton_path import recording
from pipelines.triton_path.recording import RecordingError, find, read

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "pipelines" / "hook" / "programs"
HOOK = ROOT / "pipelines" / "hook" / "path"

PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:3]
import loupe_hook
loupe_hook.start(sys.argv[3])
import kernels, standin
standin.install()
x = standin.Tensor("fp32", (64,))
kernels.total[(1,)](x, x, BLOCK=64)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_DEFAULT_FP_FUSION": "1"}
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(HOOK), str(PROGRAMS), str(folder / "all")],
        check=True,
        env=environment,
        timeout=100,
    )
    (one,) = find(folder / "all")
    return one


@pytest.fixture
def copy(recorded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recorded, tmp_path / recorded.name))


def change(folder: Path, name: str, **values: Any) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_sound_recording_is_a_trace(recorded: Path) -> None:
    found = read(recorded)
    manifest = found.compiled.manifest
    assert manifest.status == "ok"
    assert manifest.kernel.file == "<path>/kernels.py"
    assert not found.compiled.cacheable
    assert [t.stage for t in found.compiled.times] == ["ttir", "ttgir", "llvm-dialect", "llvm-ir", "ptx", "cubin"]
    TraceFile(tracefile.write(manifest, found.compiled.blobs)).verify()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"schema": "loupe.recording/2"}, "compile.json"),
        ({"schema": None}, "compile.json"),
        ({"more": 1}, "compile.json"),
        ({"target": {"backend": "cuda", "arch": "../90", "warp_size": 32}}, "compile.json"),
        ({"target": {"backend": "cpu", "arch": "90", "warp_size": 32}}, "compile.json"),
        ({"roots": [["/x", "<script>alert(1)</script>"]]}, "compile.json"),
        ({"roots": [["/x", ""]] * 10_000}, "compile.json"),
        ({"tools": []}, "compile.json"),
        ({"tools": [{"name": "triton", "version": "3", "sha256": "no"}]}, "compile.json"),
        ({"files": {"/etc/passwd": "../../../../etc/passwd"}}, "compile.json"),
        ({"files": {"/etc/passwd": "source-7"}}, "source-7.out is missing"),
        ({"group": "'; DROP TABLE traces"}, "compile.json"),
        ({"at": "now"}, "compile.json"),
    ],
)
def test_description_that_the_hook_does_not_write_is_refused(copy: Path, values: dict[str, Any], words: str) -> None:
    change(copy, "compile.json", **values)
    with pytest.raises(RecordingError, match=words) as caught:
        read(copy)
    assert caught.value.args[0].startswith(copy.name)


@pytest.mark.parametrize("name", ["compile.json", "launch.json", "events.jsonl", "metadata.json"])
@pytest.mark.parametrize(
    "data", [b"[" * 100_000 + b"\n", b"null\n", b'{"a": NaN}\n', b"\xff\xfe\n", b'"' + b"x" * (5 << 20)]
)
def test_files_that_the_hook_does_not_write_are_refused(copy: Path, name: str, data: bytes) -> None:
    (copy / name).write_bytes(data)
    with pytest.raises(RecordingError):
        read(copy)


@pytest.mark.parametrize("name", ["compile.json", "source.out", "ptx.out", "dump.mlir"])
def test_links_and_pipes_are_not_read(copy: Path, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret"
    shutil.copy(copy / name, secret)
    for make in (lambda path: path.symlink_to(secret), os.mkfifo):
        (copy / name).unlink()
        make(copy / name)
        try:
            manifest = read(copy).compiled.manifest
        except RecordingError:
            continue
        assert manifest.status == ("failed" if name == "dump.mlir" else "ok")
        assert name == "dump.mlir" or manifest.artifact("ptx") is None


def test_folder_that_is_a_link_is_refused(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / recorded.name).symlink_to(recorded)
    (found,) = find(tmp_path)
    with pytest.raises(RecordingError, match="cannot be read"):
        read(found)


def test_only_folders_of_the_hook_are_found_in_order(tmp_path: Path) -> None:
    for name in (
        "7-0a1b2c3d-10",
        "7-0a1b2c3d-9",
        "7-0a1b2c3d",
        "cache",
        "..hidden",
        "7-0A1B2C3D-1",
        "7-0a1b2c3d-1.part",
    ):
        (tmp_path / name).mkdir()
    assert [path.name for path in find(tmp_path)] == ["7-0a1b2c3d-9", "7-0a1b2c3d-10"]
    with pytest.raises(RecordingError, match="cannot be read"):
        find(tmp_path / "nowhere")


def test_too_many_compilations_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_COMPILES", 2)
    for number in range(3):
        (tmp_path / f"7-0a1b2c3d-{number}").mkdir()
    with pytest.raises(RecordingError, match="holds 3 compilations"):
        find(tmp_path)


def test_forged_dump_is_told_in_the_trace(copy: Path) -> None:
    (copy / "dump.mlir").write_bytes(
        b"// -----// IR Dump Before Evil: evil ('builtin.module' operation) //----- //\nx\n"
    )
    manifest = read(copy).compiled.manifest
    assert manifest.failure is not None
    assert manifest.failure.kind == "invalid"


def test_chip_that_is_not_compiled_for_here_is_named(copy: Path) -> None:
    change(copy, "compile.json", target={"backend": "cuda", "arch": "87", "warp_size": 32})
    assert read(copy).compiled.manifest.target.arch == "sm_87"


def test_error_without_an_end_is_an_abort(copy: Path) -> None:
    change(copy, "compile.json", ended=False)
    (copy / "cubin.out").unlink()
    (copy / "events.jsonl").write_text("".join((copy / "events.jsonl").read_text().splitlines(keepends=True)[:-2]))
    manifest = read(copy).compiled.manifest
    assert manifest.failure is not None
    assert (manifest.failure.kind, manifest.failure.address) == ("abort", "ptx")
    assert "ended while it compiled" in manifest.failure.message


FILES = st.sampled_from(
    ["compile.json", "launch.json", "events.jsonl", "metadata.json", "error.json", "dump.mlir", "ptx.out"]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=FILES, at=st.floats(0, 1), data=st.binary(max_size=40), cut=st.integers(0, 40))
def test_any_damage_is_a_trace_or_a_refusal(copy: Path, name: str, at: float, data: bytes, cut: int) -> None:
    path = copy / name
    sound = (
        path.read_bytes()
        if path.exists()
        else b'{"type": "E", "message": "m", "places": [], "stage": null, "user": false}'
    )
    place = int(at * len(sound))
    path.write_bytes(sound[:place] + data + sound[place + cut :])
    said = copy.name
    try:
        found = read(copy).compiled
        TraceFile(tracefile.write(found.manifest, found.blobs)).verify()
    except RecordingError as error:
        said = str(error)
    finally:
        path.write_bytes(sound)
        if name == "error.json":
            path.unlink()
    assert said.startswith(copy.name)
