from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.helpers import Built, loupe

SOURCE = (
    "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
    "def put(x_ptr, BLOCK: tl.constexpr):\n    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)\n"
)
GIVEN = ("--arg", "x_ptr=*fp32:16", "--const", "BLOCK=64", "--target", "sm_80")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The home and the JSON of a compilation with both addenda."""
    folder = tmp_path_factory.mktemp("added")
    (folder / "put.py").write_text(SOURCE)
    ended = loupe("compile", folder / "put.py", *GIVEN, "--llvm-passes", "--pass-times", "--json", home=folder / "home")
    assert ended.exit_code == 0, ended.output
    return folder / "home", json.loads(ended.stdout)


def test_compile_adds_what_its_flags_name(made: tuple[Path, dict[str, Any]]) -> None:
    _, told = made
    llvm, times = told["addenda"]
    assert (llvm["kind"], llvm["status"], times["kind"], times["status"]) == (
        "llvm-passes",
        "done",
        "pass-times",
        "done",
    )
    assert [stage["name"] for stage in llvm["stages"]] == ["llvm-ir", "llvm-codegen"]
    assert times["times"]["runs"] == 3
    assert [stage["name"] for stage in told["traces"][0]["stages"]] == ["ttir", "ttgir", "llvm-dialect"]


def test_show_and_diff_read_llvm_passes(made: tuple[Path, dict[str, Any]]) -> None:
    home, told = made
    llvm = told["addenda"][0]
    shown = loupe("show", llvm["trace"], "--pass", "llvm-ir:7", "--json", home=home)
    assert shown.exit_code == 0, shown.output
    data = json.loads(shown.stdout)
    assert data["digest"] == llvm["stages"][0]["passes"][6]["text"]
    assert data["text"].startswith("; ModuleID")
    assert data["pass"]["name"] == llvm["stages"][0]["passes"][6]["name"]
    last = f"llvm-ir:{len(llvm['stages'][0]['passes'])}"
    compared = loupe("diff", llvm["trace"], last, "llvm-ir", home=home)
    assert compared.stdout.startswith(f"{last} to llvm-ir: +0 -0")
    missing = loupe("show", llvm["trace"], "--pass", "llvm-ir:9999", home=home)
    assert missing.exit_code == 1
    assert "there is no llvm-ir:9999" in missing.stderr


def test_text_tells_where_the_passes_are_and_the_slowest(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    home, told = made
    (tmp_path / "put.py").write_text(SOURCE)
    ended = loupe("compile", tmp_path / "put.py", *GIVEN, "--llvm-passes", "--pass-times", home=home)
    assert ended.exit_code == 0, ended.output
    passes = len(told["addenda"][0]["stages"][0]["passes"])
    assert f"llvm-ir: {passes} passes; loupe show " in ended.stdout
    assert "the slowest passes, medians of 3 compilations without dumps" in ended.stdout


def test_what_cannot_be_added_is_told_and_fails(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(SOURCE.replace("1.0", "nothing"))
    ended = loupe("compile", tmp_path / "bad.py", *GIVEN, "--llvm-passes", home=tmp_path / "home")
    assert ended.exit_code == 1
    assert "llvm-passes: The trace has no LLVM IR" in ended.stderr


def test_file_without_llvm_passes_says_which_stages_it_has(file: Path, built: Built, tmp_path: Path) -> None:
    ended = loupe("show", file, "--pass", "llvm-ir:7", home=tmp_path)
    assert ended.exit_code == 1
    assert f"this trace has no stage llvm-ir; it has {built.manifest.stages[0].name}" in ended.stderr
