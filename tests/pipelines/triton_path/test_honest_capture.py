"""Each trace against an independent raw dump: no pass lost, no text altered, stages ending in Triton's output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from pipelines.trace import Manifest, previous
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.spec import Compiled, CompileSpec
from pipelines.triton_path.targets import CHIPS
from tests.conftest import EXAMPLES

OWN = Path(__file__).with_name("kernels")
INDEPENDENT = Path(__file__).with_name("independent.py")
TRITON = str(Path(find_spec("triton").origin).parent)

FAILING = {"fails_in_pass", "fails_in_ptxas"}
KERNELS = sorted({p.stem for p in EXAMPLES.glob("*.py")} - FAILING)
# These go through every lowering of loads, dots and descriptors that a chip may have; of the rest, two chips tell.
EVERYWHERE = ("matmul", "matmul_descriptors", "softmax")
TWO = ("sm_80", "sm_100")
# What Triton itself refuses: sm_80 has no fp8e4nv.
REFUSED = {("matmul_fp8", "sm_80")}
NVIDIA = [chip.arch for chip in CHIPS.values() if chip.backend.name == "cuda"]
# AMD's compiler lowers a kernel in another order for each family: two of CDNA, one of RDNA.
AMD = [
    (kernel, arch)
    for kernel in ("vector_add", "softmax", "layer_norm", "rms_norm")
    for arch in ("gfx942", "gfx950", "gfx1100")
] + [("matmul", "gfx942")]
CASES = [(kernel, target) for kernel in KERNELS for target in (NVIDIA if kernel in EVERYWHERE else TWO)] + AMD


@pytest.fixture(scope="module")
def independent() -> Iterator[subprocess.Popen[str]]:
    """The other process, warm."""
    process = subprocess.Popen(
        [sys.executable, str(INDEPENDENT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert process.stdin
    assert process.stdout
    yield process
    process.stdin.close()
    process.stdout.close()
    process.wait(timeout=30)


def raw_dump(process: subprocess.Popen[str], file: Path, manifest: Manifest, out: Path) -> dict[str, str]:
    job = {
        "file": str(file),
        "kernel": manifest.kernel.name,
        "arguments": [a.model_dump(mode="json") for a in manifest.kernel.arguments],
        "options": manifest.options,
        "target": manifest.target.arch,
        "out": str(out),
    }
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"
    return {
        path.name: path.read_text().replace(TRITON, "<triton>")
        for path in out.iterdir()
        if path.is_file() and path.name not in ("kernel.py", "hsaco")
    }


def stored_dump(compiled: Compiled) -> list[tuple[str, str]]:
    """The trace told as a dump: each pass's exact argument with the text it received, inner steps with their own."""
    found = []
    for stage in compiled.manifest.stages:
        for item in stage.passes:
            if item.step and item.step.startswith("before "):
                continue
            address = f"{stage.name}:{item.ordinal}"
            text = item.text if item.step else compiled.manifest.resolve(previous(compiled.manifest, address)).text
            found.append((f"step {item.step}" if item.step else item.argument, compiled.blobs[text].decode()))
    return found


def headers_and_texts(dump: str) -> list[tuple[str, str]]:
    parts = re.split(
        r"(?m)^// -----// (?:IR Dump Before .*?: (.*) \('.*//----- //|.* internal IR Dump After: (.*))$", dump
    )
    return [
        (parts[i] if parts[i] is not None else f"step {parts[i + 1]}", parts[i + 2].strip("\n"))
        for i in range(1, len(parts), 3)
    ]


@pytest.mark.parametrize(("example", "target"), CASES)
def test_no_pass_is_lost_and_no_text_altered(
    compiler: Compiler, independent: subprocess.Popen[str], example: str, target: str, tmp_path: Path
):
    spec = CompileSpec(source=(EXAMPLES / f"{example}.py").read_text(), target=target)
    first = compiler.compile(spec, lambda _: None)
    rest = [spec.model_copy(update={"launch": launch}) for launch in range(1, len(first.launches))]
    for number, compiled in enumerate([first, *(compiler.compile(other, lambda _: None) for other in rest)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        raw = raw_dump(independent, EXAMPLES / f"{example}.py", compiled.manifest, folder)
        assert (compiled.manifest.status == "failed") == ((example, target) in REFUSED), compiled.manifest.failure
        check(compiled, raw)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("warp_specialized", "sm_90"),
        ("warp_specialized", "sm_100"),
        ("gluon_warp_specialized", "sm_90"),
        ("gluon_warp_specialized", "sm_100"),
        ("gluon_descriptors", "sm_90"),
        ("gluon_descriptors", "sm_100"),
        ("gluon_cdna", "gfx942"),
        ("gluon_cdna", "gfx950"),
    ],
)
def test_kernels_written_for_a_chip(
    compiler: Compiler, independent: subprocess.Popen[str], name: str, target: str, tmp_path: Path
):
    file = OWN / f"{name}.py"
    compiled = compiler.compile(CompileSpec(source=file.read_text(), target=target), lambda _: None)
    assert compiled.manifest.status == "ok", compiled.manifest.failure
    stages = [stage.name for stage in compiled.manifest.stages]
    assert stages == (["ttgir", "llvm-dialect"] if "gluon" in name else ["ttir", "ttgir", "llvm-dialect"])
    check(compiled, raw_dump(independent, file, compiled.manifest, tmp_path))


def check(compiled: Compiled, raw: dict[str, str]) -> None:
    """Hold a trace against the independent dump of the same launch."""
    manifest = compiled.manifest
    if manifest.status == "failed":
        assert "error" in raw, f"only here: {manifest.failure}"
        return
    assert "error" not in raw, raw.get("error")

    dumped, stored = headers_and_texts(raw["dump.mlir"]), stored_dump(compiled)
    assert [name for name, _ in stored] == [name for name, _ in dumped]
    for (name, ours), (_, theirs) in zip(stored, dumped, strict=True):
        assert ours == theirs, f"the text before {name}"
    assert {stage.name for stage in manifest.stages} == raw.keys() & {"ttir", "ttgir", "llvm-dialect"}
    for stage in manifest.stages:
        last = [p for p in stage.passes if p.parent is None][-1]
        assert compiled.blobs[last.text].decode() == raw[stage.name].strip("\n")
    assembly = CHIPS[manifest.target.arch].backend.assembly
    for artifact, name in (("llvm-ir", "llir"), (assembly, assembly)):
        assert compiled.blobs[manifest.artifact(artifact).digest].decode() == raw[name].strip("\n")
