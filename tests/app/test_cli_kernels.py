"""What ``loupe kernels`` lists, and how ``loupe compile`` says that it has guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.helpers import loupe

HEAD = "import triton\nimport triton.language as tl\n\n"
SCALE = """@triton.autotune(configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=["n"])
@triton.jit
def scale(x_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)
"""


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """A file with an autotuned kernel and no launch code."""
    path = tmp_path / "scale.py"
    path.write_text(HEAD + SCALE)
    return path


def test_kernels_are_listed_with_their_guesses(scale: Path, tmp_path: Path) -> None:
    told = loupe("kernels", scale, home=tmp_path / "home")
    assert told.exit_code == 0, told.output
    rows = [" ".join(line.split()) for line in told.stdout.splitlines()]
    assert rows[0] == "scale line 6, not launched by the source, autotuned: 2 configs by n"
    assert rows[1:] == [
        "x_ptr - *fp16:16 guessed: loaded from",
        "n - i32 guessed: counted with",
        "factor - fp32 guessed: computed with loaded values",
        "BLOCK tl.constexpr 128 first autotune config",
    ]
    assert not (tmp_path / "home").exists()


def test_kernels_as_json_are_what_the_api_answers(scale: Path, tmp_path: Path) -> None:
    (kernel,) = json.loads(loupe("kernels", scale, "--json", home=tmp_path).stdout)["kernels"]
    assert kernel["tuning"]["configs"] == [{"values": {"BLOCK": size}, "options": {}} for size in ("128", "256")]
    assert kernel["arguments"][2]["guess"]["value"] == "fp32"


def test_a_source_that_does_not_parse_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("x = 1\ndef f(:\n")
    told = loupe("kernels", path, home=tmp_path)
    assert told.exit_code == 1
    assert "bad.py:2: invalid syntax" in told.output


def test_a_package_follows_arguments_into_its_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "pkg"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "parts.py").write_text(HEAD + "@triton.jit\ndef read(p, at):\n    return tl.load(p + at)\n")
    kernel = "from .parts import read\n\n@triton.jit\ndef copy(a, b, BLOCK: tl.constexpr):\n"
    body = "    at = tl.arange(0, BLOCK)\n    tl.store(b + at, read(a, at))\n"
    (folder / "main.py").write_text(HEAD + kernel + body)
    told = loupe("kernels", folder, "--entry", "main.py", home=tmp_path)
    assert "read() has it loaded from" in told.stdout


def test_a_compilation_by_guess_says_so_at_each_field(scale: Path, tmp_path: Path) -> None:
    told = loupe("compile", scale, "--const", "BLOCK=64", "--target", "sm_80", home=tmp_path / "home")
    assert told.exit_code == 0, told.output
    rows = [" ".join(line.split()) for line in told.stdout.splitlines()]
    assert "the signature is guessed from how the kernel uses its arguments:" in rows
    assert "x_ptr *fp16:16 guessed" in rows
    assert "BLOCK 64" in rows


def test_a_group_by_guess_says_so_once_for_each_kernel(scale: Path, tmp_path: Path) -> None:
    told = loupe("compile", scale, "--arg", "factor=fp32", "--target", "sm_80", home=tmp_path / "home")
    rows = [" ".join(line.split()) for line in told.stdout.splitlines()]
    assert rows.count("x_ptr *fp16:16 guessed") == 1
    assert "factor fp32" in rows
