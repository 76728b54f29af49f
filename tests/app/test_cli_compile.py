from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import ClickException

from app.cli.compile import value, write_files
from app.database import Database
from app.models import Trace
from app.services import Services
from pipelines.tracefile import TraceFile
from tests.app.helpers import Built, Home, loupe
from tests.conftest import EXAMPLES


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
    head, *rows = [line.split() for line in ended.stdout.split("\n\n")[0].split("\n")]
    assert head[:3] == ["kernel", "target", "config"]
    assert [(row[0], row[1], row[3], len(row)) for row in rows] == [
        ("put", "sm_80", "ok", len(head)),
        ("put", "sm_90", "ok", len(head)),
    ]
    assert all(int(row[head.index("registers")]) > 0 for row in rows)
    assert all(row[-1].startswith("/t/") for row in rows)
    assert "passes, " not in ended.stdout
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
        (("--arg", "x_ptr=*fp99"), "*fp99"),
        (("--port", "1"), "No such option"),
    ],
)
def test_bad_flags_are_refused_in_words(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    ended = loupe("compile", EXAMPLES / "softmax.py", *words, home=tmp_path)
    assert ended.exit_code == 2
    assert message in ended.output


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("none/out.loupe", "-o: there is no folder"),
        ("file/out.loupe", "-o: there is no folder"),
        ("file", "-o: "),
    ],
)
def test_output_is_checked_before_anything_is_compiled(tmp_path: Path, output: str, message: str) -> None:
    (tmp_path / "file").write_text("")
    targets = ("--target", "sm_80", "--target", "sm_90")
    ended = loupe("compile", EXAMPLES / "softmax.py", *targets, "-o", tmp_path / output, home=tmp_path / "home")
    assert ended.exit_code == 2
    assert message in ended.output
    assert not (tmp_path / "home").exists()


def test_several_traces_do_not_fit_into_a_file(tmp_path: Path, services: Services, built: Built) -> None:
    services.blobs.put(built.manifest.content, built.data)
    traces = [Trace(target="sm_80", variant=number, content=built.manifest.content) for number in range(2)]
    (tmp_path / "out.loupe").write_text("kept")
    with pytest.raises(ClickException, match="is a file, and 2 traces need a folder"):
        write_files(services.blobs, traces, tmp_path / "out.loupe")
    assert (tmp_path / "out.loupe").read_text() == "kept"
    write_files(services.blobs, traces, tmp_path / "out")
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_fresh_compiles_what_is_known(softmax: Home) -> None:
    words = ("compile", EXAMPLES / "softmax.py", "--target", "sm_90")
    for more, cached in (((), True), (("--fresh",), False)):
        assert loupe(*words, *more, home=softmax.path).exit_code == 0
        database = Database(softmax.path / "loupe.db")
        with database.read() as session:
            newest = session.query(Trace).order_by(Trace.created.desc()).first()
        database.close()
        assert newest
        assert (newest.status, newest.cached) == ("ok", cached)


def test_home_is_its_owners_only(softmax: Home) -> None:
    for path in softmax.path.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_source_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    (tmp_path / "large.py").write_bytes(b"#" * ((1 << 20) + 1))
    assert "is not UTF-8" in loupe("compile", tmp_path / "latin.py", home=tmp_path / "home").output
    assert "is larger than 1 MB" in loupe("compile", tmp_path / "large.py", home=tmp_path / "home").output
    assert "does not exist" in loupe("compile", tmp_path / "none.py", home=tmp_path / "home").output


def test_compiled_trace_has_a_permalink(softmax: Home) -> None:
    shown = loupe("show", softmax.trace, "--json", home=softmax.path)
    assert json.loads(shown.output)["kernel"]["name"] == "softmax_kernel"
    assert loupe("show", f"/t/{softmax.trace}", home=softmax.path).exit_code == 0


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


def test_a_kernel_for_amd_is_compiled_shown_and_exported(tmp_path: Path) -> None:
    home, file, folder = tmp_path / "home", tmp_path / "add.loupe", tmp_path / "out"
    ended = loupe("compile", EXAMPLES / "vector_add.py", "--target", "gfx942", "-o", file, home=home)
    assert ended.exit_code == 0, ended.output
    assert all(words in ended.stdout for words in ("SGPRs", "VGPRs spilled", "waves a SIMD"))
    shown = loupe("show", file, "--artifact", "amdgcn", home=home).stdout
    assert shown.startswith("\t.amdgcn_target")
    assert "s_endpgm" in shown
    assert loupe("export", file, "--dir", folder, home=home).exit_code == 0
    names = {path.name for path in folder.rglob("*")}
    assert names >= {"kernel.amdgcn", "kernel.hsaco", "kernel.ll"}
    assert next(folder.rglob("kernel.amdgcn")).read_text().strip("\n") == shown.strip("\n")
