from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.cli import main
from app.cli.compile import value
from app.cli.export import safe
from app.config import Settings
from app.database import Database
from app.models import Trace
from pipelines.tracefile import TraceFile
from tests.app.helpers import CUBIN, PTX, SASS, SOURCE, Built
from tests.conftest import EXAMPLES, ROOT


@dataclass(frozen=True)
class Home:
    """A home that compiled one kernel from the command line."""

    path: Path
    group: str
    trace: str


def loupe(*words: str | Path, home: Path | None = None) -> Result:
    """Run the command in this process."""
    env = {"LOUPE_HOME": str(home)} if home else {}
    return CliRunner().invoke(main, [str(word) for word in words], env=env)


@pytest.fixture(scope="module")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """``loupe compile`` as a user runs it, in a process of its own."""
    home = tmp_path_factory.mktemp("cli")
    command = [sys.executable, "-m", "app.cli", "compile", str(EXAMPLES / "softmax.py"), "--target", "sm_90", "--json"]
    env = {**os.environ, "LOUPE_HOME": str(home)}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=90, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    data = json.loads(ended.stdout)
    (manifest,) = data["traces"]
    assert [stage["name"] for stage in manifest["stages"]] == ["ttir", "ttgir", "llvm-dialect"]
    assert all(stage["passes"] for stage in manifest["stages"])
    assert {"ptx", "sass", "cubin", "llvm-ir"} <= {artifact["name"] for artifact in manifest["artifacts"]}
    database = Database(home / "loupe.db")
    with database.read() as session:
        (trace,) = session.query(Trace).all()
    database.close()
    assert trace.group_id == data["group"]
    return Home(home, data["group"], trace.id)


@pytest.fixture
def file(tmp_path: Path, built: Built) -> Path:
    path = tmp_path / "scale.loupe"
    path.write_bytes(built.data)
    return path


def test_compiled_trace_has_a_permalink(softmax: Home) -> None:
    shown = loupe("show", softmax.trace, "--json", home=softmax.path)
    assert json.loads(shown.output)["kernel"]["name"] == "softmax_kernel"
    assert loupe("show", f"/t/{softmax.trace}", home=softmax.path).exit_code == 0


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


def test_error_shows_the_users_line(tmp_path: Path) -> None:
    source = (
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef bad(x_ptr):\n    tl.store(x_ptr, nothing)\n"
    )
    path = tmp_path / "bad.py"
    path.write_text(source)
    ended = loupe("compile", path, "--arg", "x_ptr=*fp32", "--target", "sm_80", home=tmp_path / "home")
    assert ended.exit_code == 1
    assert "nothing is not defined" in ended.stderr
    assert "bad.py:7" in ended.stderr
    assert "7 |     tl.store(x_ptr, nothing)" in ended.stderr


def test_several_traces_go_into_a_folder(tmp_path: Path) -> None:
    source = (
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
        "def put(x_ptr, BLOCK: tl.constexpr):\n    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)\n"
    )
    path = tmp_path / "put.py"
    path.write_text(source)
    given = ("--arg", "x_ptr=*fp32:16", "--const", "BLOCK=64", "--option", "num_warps=2")
    ended = loupe(
        "compile",
        path,
        *given,
        "--target",
        "sm_80",
        "--target",
        "sm_90",
        "-o",
        tmp_path / "out",
        home=tmp_path / "home",
    )
    assert ended.exit_code == 0, ended.output
    written = sorted((tmp_path / "out").iterdir())
    assert [item.name for item in written] == ["put-sm_80.loupe", "put-sm_90.loupe"]
    manifest = TraceFile.open(written[0]).manifest
    assert manifest.kernel.file == "put.py"
    assert manifest.options["num_warps"] == 2
    assert [argument.value for argument in manifest.kernel.arguments if argument.name == "BLOCK"] == [64]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--arg", "x"), "--arg takes NAME=VALUE"),
        (("--target", "sm_1"), "there is no target sm_1; choose from sm_75"),
        (("--option", "num_wraps=4"), "there is no option num_wraps"),
        (("--port", "1"), "No such option"),
    ],
)
def test_bad_flags_are_refused_in_words(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    ended = loupe("compile", EXAMPLES / "softmax.py", *words, home=tmp_path)
    assert ended.exit_code != 0
    assert message in ended.output


def test_source_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    (tmp_path / "large.py").write_bytes(b"#" * ((1 << 20) + 1))
    assert "is not UTF-8" in loupe("compile", tmp_path / "latin.py", home=tmp_path / "home").output
    assert "is larger than 1 MB" in loupe("compile", tmp_path / "large.py", home=tmp_path / "home").output
    assert "does not exist" in loupe("compile", tmp_path / "none.py", home=tmp_path / "home").output


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


def test_diff_counts_and_shows_what_changed(file: Path, built: Built) -> None:
    last = len(built.manifest.stages[0].passes)
    data = json.loads(loupe("diff", file, "ttir:0", f"ttir:{last}", "--json").output)
    text = loupe("diff", file, "ttir:0", f"ttir:{last}").output.split("\n")
    assert text[0] == f"ttir:0 to ttir:{last}: +{data['plus']} -{data['minus']}, {data['renamed']} renamed only"
    added = [line[1:] for line in text[1:] if line.startswith("+")]
    removed = [line[1:] for line in text[1:] if line.startswith("-")]
    assert (len(added), len(removed)) == (data["plus"], data["minus"])
    after = built.blobs[built.manifest.resolve(f"ttir:{last}").text].decode().split("\n")
    assert set(added) <= set(after)
    assert sum(line.startswith("@@") for line in text) >= 1
    assert loupe("diff", file, "ttir:0", "cubin").exit_code == 1


def test_diff_shows_context_once(file: Path, built: Built) -> None:
    last = len(built.manifest.stages[0].passes)
    after = built.blobs[built.manifest.resolve(f"ttir:{last}").text].decode().split("\n")
    shown = [
        line[1:] for line in loupe("diff", file, "ttir:0", f"ttir:{last}").output.split("\n") if line[:1] in (" ", "+")
    ]
    places = [after.index(line) for line in shown if after.count(line) == 1]
    assert places == sorted(set(places))


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


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("8", 8),
        ("1.5", 1.5),
        ("true", True),
        ("False", False),
        ("None", None),
        ("tl.float16", "tl.float16"),
        ("[1, 2]", [1, 2]),
    ],
)
def test_values_are_read_as_written(text: str, read: object) -> None:
    assert value(text) == read
    assert type(value(text)) is type(read)


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
    for name in ("serve", "compile", "show", "diff", "export", "worker"):
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
