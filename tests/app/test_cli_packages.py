"""``loupe compile`` of several files, a folder, a zip and an installed module."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import click
import pytest

from app.cli.files import read_files
from tests.app.helpers import loupe
from tests.pipelines.triton_path.test_packages import LAUNCH, PACKAGE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for path, text in {**PACKAGE, ".venv/hidden.py": "1 / 0\n", "pkg/data.json": "{}"}.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture
def archive(folder: Path, tmp_path: Path) -> Path:
    path = tmp_path / "project.zip"
    with zipfile.ZipFile(path, "w") as made:
        for file in sorted(folder.rglob("*.py")):
            made.write(file, f"project-1.0/{file.relative_to(folder)}")
    return path


def test_a_folder_is_a_package(folder: Path):
    made = read_files([str(folder)], None)
    assert made == {"files": PACKAGE, "file": "pkg/ops/norm.py"}


def test_a_folder_inside_a_package_keeps_the_packages_name(folder: Path):
    for path in ("pkg/__init__.py", "pkg/ops/__init__.py"):
        (folder / path).write_text("")
    made = read_files([str(folder / "pkg" / "ops")], "norm.py")
    assert made["file"] == "pkg/ops/norm.py"
    assert set(made["files"]) == {"pkg/ops/__init__.py", "pkg/ops/kernels.py", "pkg/ops/norm.py"}


def test_a_zip_is_a_package(archive: Path):
    assert read_files([str(archive)], None) == {"files": PACKAGE, "file": "pkg/ops/norm.py"}
    assert read_files([str(archive)], "ops/kernels.py")["file"] == "pkg/ops/kernels.py"


def test_several_files_are_named_from_their_common_folder(folder: Path, monkeypatch: pytest.MonkeyPatch):
    names = [str(folder / "pkg/ops/norm.py"), str(folder / "pkg/util.py")]
    assert set(read_files(names, None)["files"]) == {"ops/norm.py", "util.py"}
    monkeypatch.chdir(folder / "pkg")
    assert read_files(["ops/norm.py", "util.py"], "ops/norm.py")["file"] == "ops/norm.py"
    assert read_files(["ops/norm.py", "util.py"], "./util.py")["file"] == "util.py"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LAUNCH, "imports .kernels, a file beside it: give the folder, as in loupe compile"),
        ("import util\n", "imports util, a file beside it"),
    ],
)
def test_a_lone_file_that_needs_its_neighbours_says_to_give_the_folder(tmp_path: Path, text: str, words: str):
    (tmp_path / "util.py").write_text("")
    (tmp_path / "norm.py").write_text(text)
    with pytest.raises(click.UsageError) as raised:
        read_files([str(tmp_path / "norm.py")], None)
    assert words in raised.value.message


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    from .util import x\nexcept ImportError:\n    x = 1\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .util import x\n",
        "import json\nimport norm\nimport click\n",
        "def broken(:\n",
    ],
)
def test_a_lone_file_that_can_do_without_is_taken(tmp_path: Path, text: str):
    for name in ("util", "json", "norm", "click"):
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "norm.py").write_text(text)
    assert read_files([str(tmp_path / "norm.py")], None) == {"source": text, "file": "norm.py"}


@pytest.mark.parametrize(
    ("names", "entry", "words"),
    [
        (["pkg"], "nothing.py", "there is no nothing.py among the files"),
        (["pkg/ops/kernels.py", "-"], None, "one source of its own"),
        (["empty"], None, "no Python file"),
        (["many"], None, "--entry: say which file to start with: a.py, b.py"),
    ],
)
def test_what_is_no_package_is_told(folder: Path, names: list[str], entry: str | None, words: str):
    (folder / "empty").mkdir()
    (folder / "many").mkdir()
    for name in ("a.py", "b.py"):
        (folder / "many" / name).write_text("@triton.jit\ndef k(): pass\n")
    with pytest.raises(click.UsageError) as raised:
        read_files([name if name == "-" else str(folder / name) for name in names], entry)
    assert words in raised.value.message


def test_files_or_a_module_are_needed_not_both(folder: Path, tmp_path: Path):
    assert "give --module" in loupe("compile", home=tmp_path / "home").stderr
    both = loupe("compile", folder, "--module", "triton.language", home=tmp_path / "home")
    assert "takes the place of files" in both.stderr
    missing = loupe("compile", "--module", "nolib.ops", home=tmp_path / "home")
    assert "no library nolib is installed" in missing.stderr


def test_a_zip_compiles_and_its_files_can_be_read_again(archive: Path, tmp_path: Path):
    out = tmp_path / "out.loupe"
    ended = loupe("compile", archive, "--json", "-o", out, home=tmp_path / "home")
    assert ended.exit_code == 0, ended.stderr
    kernel = json.loads(ended.stdout)["traces"][0]["kernel"]
    assert (kernel["name"], kernel["file"]) == ("scale", "pkg/ops/norm.py")
    for path, text in PACKAGE.items():
        shown = loupe("show", out, "--artifact", f"source:{path}", home=tmp_path / "home")
        assert shown.stdout.rstrip("\n") == text.rstrip("\n")
    missing = loupe("show", out, "--artifact", "source:pkg/none.py", home=tmp_path / "home")
    assert "no source file 'pkg/none.py'" in missing.stderr


def test_an_error_in_another_file_is_shown_with_its_line(folder: Path, tmp_path: Path):
    (folder / "pkg/util.py").write_text(PACKAGE["pkg/util.py"].replace("x * x", "x * y"))
    ended = loupe("compile", folder, home=tmp_path / "home")
    assert ended.exit_code == 1
    assert "pkg/util.py:7" in ended.stderr
    assert "7 |     return x * y" in ended.stderr


def test_an_installed_module_compiles(tmp_path: Path):
    given = ("--kernel", "cdiv", "--arg", "x=i32", "--arg", "div=i32", "--target", "sm_80")
    ended = loupe("compile", "--module", "triton.language.standard", *given, "--json", home=tmp_path / "home")
    kernel = json.loads(ended.stdout)["traces"][0]["kernel"]
    assert (kernel["module"], kernel["file"]) == ("triton.language.standard", "triton/language/standard.py")
