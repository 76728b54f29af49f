"""Sources that use torch, through the sandbox: which torch they got, what is kept of those that end early."""

from __future__ import annotations

import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from triton.backends.compiler import GPUTarget

from pipelines.kernels import capture
from pipelines.kernels.capture import Capture, TimeUpError
from pipelines.sandbox import Limits
from pipelines.trace import Diagnostic, Manifest
from pipelines.triton_path import sandboxes
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.sandboxes import uses_torch
from pipelines.triton_path.spec import CompileSpec
from pipelines.triton_path.targets import chip
from tests.growth import LINEAR, growth
from tests.pipelines.kernels.test_torch_launches import SOURCES
from tests.pipelines.triton_path.sources import CAPTURED, GIVEN, IMPORTS, KERNEL, compiled, fails, line_of, succeeds

REAL = find_spec("torch") is not None
HEAD = f"import torch\n{IMPORTS}{KERNEL}x = torch.randn(1000, device='cuda')\n"
LAUNCH = "kernel[(8,)](x, 1000, BLOCK=128)\n"


def told(manifest: Manifest, severity: str) -> list[Diagnostic]:
    return [item for item in manifest.diagnostics if item.severity == severity]


def test_a_trace_says_which_torch_it_was(compiler: Compiler):
    made = succeeds(compiler, HEAD + LAUNCH)
    expected = f"torch: {version('torch').split('+')[0]} (CPU)" if REAL else "torch: stand-in"
    assert [note.message for note in told(made, "note")] == [expected]
    assert told(made, "warning") == []
    assert made.launch.arguments[0].shape == (1000,)
    assert [tool.name for tool in made.toolchain.tools if tool.name == "torch"] == []


def test_a_source_without_torch_says_nothing_of_it(compiler: Compiler):
    assert told(succeeds(compiler, CAPTURED), "note") == []


def test_what_decides_the_launches_decides_the_key(compiler: Compiler):
    assert ("torch" in [tool.name for tool in compiler.toolchain.tools]) == REAL


def test_given_arguments_need_torch_only_for_the_import(compiler: Compiler):
    made = succeeds(compiler, HEAD.replace("randn", "zeros") + LAUNCH, **GIVEN)
    assert made.launch is None


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_tutorials_compile_as_they_are(compiler: Compiler, path):
    made = compiled(compiler, path.read_text(), file=path.name, target="sm_90")
    assert made.manifest.status == "ok", made.manifest.failure
    assert told(made.manifest, "warning") == []
    last = compiled(compiler, path.read_text(), file=path.name, target="sm_90", launch=len(made.launches) - 1)
    assert last.manifest.status == "ok", last.manifest.failure
    assert last.manifest.kernel.name == made.launches[-1].kernel
    assert last.manifest.launch.grid == made.launches[-1].grid


@pytest.mark.skipif(REAL, reason="the real torch is installed")
def test_what_the_standin_lacks_is_named_and_the_launches_before_it_are_kept(compiler: Compiler):
    source = f"{HEAD}{LAUNCH}y = torch.fft.rfft(x)\n"
    made = succeeds(compiler, source)
    (warning,) = told(made, "warning")
    assert "torch.fft is not in Loupe's stand-in for torch" in warning.message
    assert 'pip install "loupe[torch]"' in warning.message
    assert warning.line == line_of(source, "torch.fft")
    message, errors = fails(compiler, f"import torch.fft\n{HEAD}{LAUNCH}")
    assert "torch.fft is not in Loupe's stand-in for torch" in message
    assert errors[0].line == 1


def test_values_that_are_nowhere_are_told_at_their_line(compiler: Compiler):
    source = f"{HEAD}{LAUNCH}big = torch.randn(1 << 22, device='cuda')\nif big.sum().item() > 0:\n    pass\n"
    (warning,) = told(succeeds(compiler, source), "warning")
    assert "values" in warning.message
    assert warning.line == line_of(source, "big.sum().item()")


def test_a_missing_helper_is_told_by_its_name(compiler: Compiler):
    message, _ = fails(compiler, f"import einops\n{HEAD}{LAUNCH}")
    assert "No module named 'einops'" in message


def test_numpy_and_torch_share_values(compiler: Compiler):
    source = (
        f"import numpy as np\n{HEAD}lengths = torch.from_numpy(np.array([3, 4], dtype=np.int32)).cuda()\n"
        "kernel[(int(lengths.sum()),)](x, int(lengths.cpu().numpy().max()) * 16, BLOCK=128)\n"
    )
    made = succeeds(compiler, source)
    assert made.launch.grid == (7, 1, 1)
    assert made.kernel.arguments[1].divisibility == 16


def test_a_later_launch_ends_the_source_when_it_was_made(compiler: Compiler):
    """The third of three benchmarks is not run for the sake of the second launch."""
    source = (
        f"{HEAD}for n in (3, 16, 1):\n    kernel[(n,)](x, n, BLOCK=128)\n"
        "kernel[(9,)](x, 1000, BLOCK=256)\nraise ValueError('the end')\n"
    )
    first = compiled(compiler, source)
    assert [launch.grid for launch in first.launches] == [(3, 1, 1), (16, 1, 1), (1, 1, 1), (9, 1, 1)]
    assert any("the end" in warning.message for warning in told(first.manifest, "warning"))
    second = compiled(compiler, source, launch=1)
    assert told(second.manifest, "warning") == []
    assert second.manifest.launch.grid == (16, 1, 1)


def test_launch_code_is_stopped_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(capture, "MAX_SECONDS", 0.05)
    running = Capture(GPUTarget("cuda", 90, 32), chip("sm_90").properties())

    def forever() -> None:
        while True:
            try:
                time.sleep(60)
            except Exception:  # as sources have around their launches
                continue

    with pytest.raises(TimeUpError, match="was stopped"), running.bounded():
        forever()
    with running.bounded():
        pass
    time.sleep(0.1)  # the alarm is off


@pytest.mark.skipif(REAL, reason="the real torch is installed, so that its zygote starts")
def test_without_a_zygote_of_torchs_own_its_sources_run_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "torch").mkdir()
    monkeypatch.setattr(sandboxes, "torch_root", lambda: tmp_path / "torch")
    both = sandboxes.Sandboxes(tmp_path / "slots", Limits())
    try:
        both.start()
        assert both.of(CompileSpec(source=HEAD, target="sm_90")) is both.plain
        assert "No module named 'torch'" in caplog.text
    finally:
        both.close()


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("import torch", True),
        ("    import torch.nn as nn", True),
        ("from torch import nn", True),
        ("import os, torch", True),
        ("import torchvision", False),
        ("# import torch", False),
        ("import triton  # torch", False),
    ],
)
def test_sources_that_import_torch_are_known_by_their_text(text: str, used: bool):
    assert uses_torch(CompileSpec(source=f"{IMPORTS}{text}\n", target="sm_90")) == used
    assert uses_torch(CompileSpec(source="", files={"a/b.py": f"{text}\n"}, target="sm_90")) == used


@pytest.mark.parametrize("text", ["import {}", "from {}", "import a{}", "{}import"])
def test_looking_for_torch_costs_the_length_of_the_text(text: str):
    def specified(size: int) -> CompileSpec:
        return CompileSpec.model_construct(source=text.format(" " * size), module=None, files={})

    assert growth(lambda given: uses_torch(specified(len(given))), lambda size: " " * size, 4_000) < LINEAR
