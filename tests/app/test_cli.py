from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.config import Settings
from app.export_files import safe
from pipelines.trace import digest
from tests.app.helpers import CUBIN, PTX, SASS, SOURCE, Built, Home, loupe
from tests.conftest import EXAMPLES


def test_table_tells_stages_passes_and_resources(softmax: Home) -> None:
    table = loupe("show", softmax.trace, home=softmax.path).output
    assert table.startswith("softmax_kernel for sm_90: ok, triton 3")
    assert "ttgir: " in table
    assert "tritongpu-coalesce" in table
    assert " registers, " in table
    assert "cubin         binary" in table


def test_stage_is_its_output(softmax: Home) -> None:
    manifest = json.loads(loupe("show", softmax.trace, "--json", home=softmax.path).output)
    last = len(manifest["stages"][1]["passes"])
    stage = loupe("show", softmax.trace, "--stage", "ttgir", home=softmax.path).output
    assert stage == loupe("show", softmax.trace, "--pass", f"ttgir:{last}", home=softmax.path).output
    assert "ttg." in stage


LONG = "x" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ("show", LONG),
        ("compile", LONG),
        ("diff", LONG, "ttir:0", "ttir:1"),
        ("export", LONG, "--dir", "out"),
        ("search", LONG, "x"),
        ("show", "/proc/self/mem"),
        ("show", "/"),
        ("compile", "/proc/self/mem"),
    ],
)
def test_names_that_cannot_be_read_are_told_in_a_sentence(tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = loupe(*words, home=tmp_path)
    assert ended.exit_code in (1, 2)
    assert isinstance(ended.exception, SystemExit)
    assert len(ended.stderr) < 6000


def test_export_into_what_is_no_folder_is_told_in_a_sentence(file: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    for directory in (tmp_path / "taken" / "out", tmp_path / LONG, Path("/proc/out")):
        ended = loupe("export", file, "--dir", directory)
        assert ended.exit_code == 1
        assert isinstance(ended.exception, SystemExit)
        assert ended.stderr.startswith("Error: ")


def test_search_finds_lines(file: Path) -> None:
    told = json.loads(loupe("search", file, "EXIT", "--json").output)
    assert [(hit["address"], hit["line"]) for hit in told["hits"]] == [("sass", 3)]
    assert told["truncated"] is False
    assert loupe("search", file, r"ret;|EXIT", "--regex").output.startswith("ptx:4: \tret;\nsass:3: ")
    assert loupe("search", file, "0x000fe40000000f00").output == ""
    bad = loupe("search", file, "(", "--regex")
    assert (bad.exit_code, "not a regular expression" in bad.output) == (2, True)
    assert loupe("search", file, "").exit_code == 2


def test_show_prints_texts_of_a_file(file: Path, built: Built, tmp_path: Path) -> None:
    assert loupe("show", file, "--artifact", "ptx").output == PTX.decode() + "\n"
    assert loupe("show", file, "--artifact", "source").output == SOURCE.decode() + "\n"
    assert "/* 0x" not in loupe("show", file, "--artifact", "sass").output
    assert loupe("show", file, "--artifact", "sass", "--raw").output == SASS.decode() + "\n"
    assert loupe("show", file, "--artifact", "cubin").stdout_bytes == CUBIN
    data = json.loads(loupe("show", file, "--pass", "ttir:1", "--json").output)
    assert data["pass"]["name"] == built.manifest.stages[0].passes[0].name
    assert data["text"].encode() == built.blobs[data["digest"]]
    assert json.loads(loupe("show", file, "--json").output) == built.manifest.model_dump(mode="json", by_alias=True)
    assert tmp_path.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pass", "ttir:99"), "there is no ttir:99"),
        (("--pass", "x"), "is not an address such as ttgir:12"),
        (("--stage", "ttgir"), "this trace has no stage ttgir"),
        (("--stage", "ttir", "--artifact", "ptx"), "exclude one another"),
    ],
)
def test_show_says_what_is_not_there(file: Path, words: tuple[str, ...], message: str) -> None:
    ended = loupe("show", file, *words)
    assert ended.exit_code != 0
    assert message in ended.output


def test_failed_trace_shows_why(tmp_path: Path, failed: Built) -> None:
    path = tmp_path / "failed.loupe"
    path.write_bytes(failed.data)
    table = loupe("show", path).output
    assert "failed in ttir:" in table
    assert "kernel.py:5:1: no" in table
    assert "5 | def scale(x_ptr):" in table


@pytest.mark.parametrize(
    "name", ["nothing", "x" * 22, "http://localhost:1/t/" + "x" * 22, "https://example.com/t/short"]
)
def test_trace_that_cannot_be_opened_is_said_to_be_missing(tmp_path: Path, name: str) -> None:
    ended = loupe("show", name, home=tmp_path)
    assert ended.exit_code == 1
    assert ended.output.startswith("Error: ")


def test_damaged_file_is_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-30])
    ended = loupe("show", file)
    assert ended.exit_code == 1
    assert str(file) in ended.output


def test_export_writes_numbered_files(file: Path, built: Built, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert loupe("export", file, "--dir", out).exit_code == 0
    written = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    passes = built.manifest.stages[0].passes
    assert {
        "kernel.py",
        "manifest.json",
        "kernel.ptx",
        "kernel.sass",
        "kernel.cubin",
        "01-ttir/000-input.mlir",
    } <= written
    assert f"01-ttir/001-{passes[0].name}.mlir" in written
    assert len(written) == len(passes) + 6
    assert (out / "kernel.cubin").read_bytes() == CUBIN
    told = json.loads(loupe("export", file, "--dir", tmp_path / "again", "--json").output)
    assert {item["name"] for item in told["files"]} | {told["manifest"]} == written
    for item in told["files"]:
        data = (tmp_path / "again" / item["name"]).read_bytes()
        assert (digest(data), len(data)) == (item["digest"], item["bytes"])
    again = loupe("export", file, "--dir", out)
    assert again.exit_code == 1
    assert "is not empty" in again.output


def test_export_of_a_hostile_trace_stays_in_its_folder(built: Built, tmp_path: Path) -> None:
    stage = built.manifest.stages[0]
    names = ["../../../evil", "/etc/passwd", "..", "a" * 500, "x\ny", ""]
    passes = tuple(
        item.model_copy(update={"name": name, "step": "../up"}) for item, name in zip(stage.passes, names, strict=False)
    )
    manifest = built.manifest.model_copy(update={"stages": (stage.model_copy(update={"passes": passes}),)})
    path = tmp_path / "in" / "hostile.loupe"
    path.parent.mkdir()
    path.write_bytes(replace(built, manifest=manifest).data)
    out = tmp_path / "deep" / "out"
    assert loupe("export", path, "--dir", out).exit_code == 0
    outside = [item for item in tmp_path.rglob("*") if item.is_file() and out not in item.parents]
    assert outside == [path]


@pytest.mark.parametrize("name", ["..", "/", "a/b", "\\", "con\0", "é", " ", "a" * 999])
def test_safe_names_are_one_plain_component(name: str) -> None:
    assert Path(safe(name)).name == safe(name)
    assert 0 < len(safe(name)) <= 80
    assert safe(name).isascii()


def test_settings_come_from_the_environment_and_flags_win(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, setting in {"HOME": str(tmp_path), "HOST": "::1", "PORT": "9000", "TRUST_CODE": "1"}.items():
        monkeypatch.setenv(f"LOUPE_{name}", setting)
    monkeypatch.setenv("LOUPE_ALLOWED_HOSTS", "a.example, b.example")
    found = Settings.from_environment()
    assert (found.home, found.host, found.port, found.trust_code) == (tmp_path, "::1", 9000, True)
    assert found.allowed_hosts == ("a.example", "b.example")
    assert Settings.from_environment(port=0, host="x", home=Path("/h")).port == 0
    monkeypatch.setenv("LOUPE_PORT", "http")
    assert "LOUPE_PORT is 'http'" in loupe("serve").output


def test_help_lists_every_command() -> None:
    listed = loupe("--help").output
    for name in ("serve", "compile", "show", "diff", "search", "export", "worker"):
        assert f"  {name} " in listed
        assert loupe(name, "--help").exit_code == 0
    assert "compile" in loupe("worker", "--help").output


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("compile", str(EXAMPLES / "softmax.py"))])
def test_home_that_cannot_be_used_is_told_in_words(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("")
    ended = loupe(*command, home=tmp_path / "file" / "home")
    assert ended.exit_code == 1
    assert "cannot hold Loupe's data" in ended.output
    (tmp_path / "loupe.db").write_text("no database, but long enough to be looked at as one " * 40)
    ended = loupe(*command, home=tmp_path)
    assert ended.exit_code == 1
    assert "loupe.db cannot be read" in ended.output
