"""Tutorials' launch code with torch: what the stand-in gives Triton is what the real torch gives it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SOURCES = sorted((HERE / "launching").glob("*.py"))
ARCHES = ("sm_80", "sm_90")

# The kernels of the distinct launches, in order, for sm_90.
EXPECTED = {
    "attention": ["forward_kernel", "backward_kernel", "forward_kernel", "copy_kernel"],
    "dropout": ["dropout_kernel"] * 2,
    "grouped_gemm": ["grouped_kernel"] * 2,
    "layer_norm": ["forward_kernel", "backward_kernel", "weights_kernel"] * 2,
    "library_styles": ["rms_kernel"] * 3 + ["loss_kernel", "moe_kernel"] + ["quantize_kernel"] * 2 + ["rotary_kernel"],
    "matmul": ["matmul_kernel"] * 9,
    "operators": ["scale_kernel"] * 6,
    "softmax": ["softmax_kernel"] * 3,
    "vector_add": ["add_kernel"] * 2,
}


def run(which: str, arch: str) -> dict[str, Any]:
    """Run all sources in one process that has imported torch once."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "launches_of.py"), which, arch, *map(str, SOURCES)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[2]), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(SOURCES), done.stderr[-4000:]
    found = {path.stem: json.loads(line) for path, line in zip(SOURCES, lines, strict=True)}
    assert all(found.values()), done.stderr[-4000:]
    return found


@pytest.fixture(scope="module", params=ARCHES)
def standin(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """What each source launches with the stand-in, for a target."""
    return request.param, run("standin", request.param)


def test_every_launch_is_captured_with_the_standin(standin: tuple[str, dict[str, Any]]):
    arch, found = standin
    kernels = {name: [launch["kernel"] for launch in launches] for name, launches in found.items()}
    if arch == "sm_80":  # no descriptors, no fp8
        styles = [*EXPECTED["library_styles"][:6], "rotary_kernel"]
        fewer = {"attention": EXPECTED["attention"][:3], "matmul": EXPECTED["matmul"][:5], "library_styles": styles}
        expected = {**EXPECTED, **fewer}
    else:
        expected = EXPECTED
    assert kernels == expected


@pytest.mark.skipif(find_spec("torch") is None, reason="the torch extra is not installed")
def test_the_real_torch_gives_the_same_launches(standin: tuple[str, dict[str, Any]]):
    arch, found = standin
    assert run("real", arch) == found


def test_what_guesses_miss_is_exact(standin: tuple[str, dict[str, Any]]):
    _, found = standin
    whole, shifted = found["vector_add"]
    assert whole["attributes"]["x_ptr"] == [["tt.divisibility", 16]]
    assert shifted["attributes"]["x_ptr"] == []
    plain, packed = (launch for launch in found["attention"] if launch["kernel"] == "forward_kernel")
    assert plain["constexprs"]["bias_ptr"] == "None"
    assert packed["signature"]["bias_ptr"] == "*fp32"
    assert packed["signature"]["q_ptr"] == "*bf16"
    assert packed["signature"]["cu_ptr"] == "*i32"
    transposed = found["matmul"][4]
    assert transposed["constexprs"]["stride_bk"] == "1"
    assert transposed["constexprs"]["ACTIVATION"] == "'leaky_relu'"
    assert found["grouped_gemm"][0]["signature"]["a_ptrs"] == "*i64"
    assert [launch["grid"][0] for launch in found["grouped_gemm"]] != [0, 0]


def test_a_backward_gets_its_gradient_as_torch_lays_it_out(standin: tuple[str, dict[str, Any]]):
    """The gradient of a sum is one number expanded: its strides are 0, also through views."""
    _, found = standin
    gradients = [launch["strides"][1] for launch in found["layer_norm"] if launch["kernel"] == "backward_kernel"]
    assert gradients == [[2048, 1], [0, 0]]
