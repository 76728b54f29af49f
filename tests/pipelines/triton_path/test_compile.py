"""One compilation: what it gives, how it is asked for, and that it repeats."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines import tracefile
from pipelines.triton_path import compile as compile_module
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.options import OptionError
from pipelines.triton_path.spec import CompileSpec, Event
from pipelines.triton_path.targets import CHIPS, UnknownTargetError
from tests.conftest import EXAMPLES
from tests.pipelines.triton_path.sources import DESCRIPTOR, LAMBDA, TUPLES


def example(name: str, target: str = "sm_90", **more: object) -> CompileSpec:
    return CompileSpec.model_validate({"source": (EXAMPLES / f"{name}.py").read_text(), "target": target, **more})


def test_one_compilation_gives_everything(compiler: Compiler):
    events: list[Event] = []
    compiled = compiler.compile(example("softmax"), events.append)
    manifest = compiled.manifest
    assert manifest.status == "ok"
    assert [s.name for s in manifest.stages] == ["ttir", "ttgir", "llvm-dialect"]
    assert {a.name for a in manifest.artifacts} == {"llvm-ir", "ptx", "cubin", "ptxas-log", "sass"}
    assert manifest.resources.registers > 0
    assert manifest.resources.instructions > 10
    assert manifest.resources.shared == manifest.launch_metadata["shared"]
    assert [t.stage for t in compiled.times] == ["ttir", "ttgir", "llvm-dialect", "llvm-ir", "ptx", "cubin"]
    assert all(t.seconds >= 0 for t in compiled.times)
    assert any(c.startswith("ptxas") and "--gpu-name=sm_90a" in c for c in manifest.toolchain.commands)
    assert any(c.startswith("nvdisasm") for c in manifest.toolchain.commands)
    assert manifest.kernel.origin == "captured"
    assert manifest.launch.grid is not None
    sass = compiled.blobs[manifest.artifact("sass").digest].decode()
    assert "kernel.py" in sass
    assert "EXIT" in sass


def test_progress_tells_every_pass_of_the_trace(compiler: Compiler):
    events: list[Event] = []
    compiled = compiler.compile(example("vector_add"), events.append)
    told = [(e.data["stage"], e.data["ordinal"], e.data["name"]) for e in events if e.kind == "pass"]
    inner = [p for s in compiled.manifest.stages for p in s.passes if p.step and p.step.startswith("before ")]
    assert len(told) == sum(len(s.passes) for s in compiled.manifest.stages) - len(inner)
    assert [e.data["stage"] for e in events if e.kind == "stage"][:3] == ["ttir", "ttgir", "llvm-dialect"]
    ready, *more = [e for e in events if e.kind == "ready"]
    assert not more
    shown = ready.interim.manifest
    assert shown.stages == compiled.manifest.stages
    assert shown.launch_metadata == compiled.manifest.launch_metadata
    assert [a.name for a in shown.artifacts] == ["llvm-ir", "ptx"]
    assert [s.digest for s in shown.artifacts] == [compiled.manifest.artifact(n).digest for n in ("llvm-ir", "ptx")]
    assert all(compiled.blobs[name] == text for name, text in ready.interim.blobs.items())
    assert events.index(ready) < [e.data.get("name") for e in events].index("cubin")
    assert [e.kind for e in events].index("launches") == 0


def test_ptx_that_ptxas_refuses_is_shown_with_all_passes(compiler: Compiler):
    events: list[Event] = []
    compiled = compiler.compile(example("fails_in_ptxas"), events.append)
    (ready,) = [e.interim for e in events if e.kind == "ready"]
    assert (ready.manifest.failure, compiled.manifest.failure.stage) == (None, "ptx")
    assert ready.manifest.stages == compiled.manifest.stages
    assert ready.manifest.artifact("ptx") == compiled.manifest.artifact("ptx")


def test_a_dump_too_large_to_read_on_the_way_is_shown_at_the_end(compiler: Compiler, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compile_module, "MAX_INTERIM_DUMP", 1000)
    events: list[Event] = []
    compiled = compiler.compile(example("vector_add"), events.append)
    (ready,) = [e for e in events if e.kind == "ready"]
    assert events.index(ready) > [e.data.get("name") for e in events].index("cubin")
    assert ready.interim.manifest.resources.registers == compiled.manifest.resources.registers
    assert set(compiled.blobs) - set(ready.interim.blobs) == {compiled.manifest.artifact("sass").digest}


def test_same_input_same_content_in_another_directory(compiler: Compiler, tmp_path: Path):
    other = Compiler(tmp_path / "else where+é" / "deeper")
    other.start()
    try:
        examples = [example(name) for name in ("softmax", "fails_in_pass", "fails_in_ptxas")]
        objects = [CompileSpec(source=source, target="sm_90") for source in (TUPLES, DESCRIPTOR, LAMBDA)]
        for spec in (*examples, *objects, example("vector_add", "sm_80")):
            first = compiler.compile(spec, lambda _: None)
            second = other.compile(spec, lambda _: None)
            assert first.manifest.canonical() == second.manifest.canonical()
            assert tracefile.write(first.manifest, first.blobs) == tracefile.write(second.manifest, second.blobs)
            assert b"0x" not in first.manifest.canonical()
    finally:
        other.close()


def test_autotune_configs_are_launches_of_their_own(compiler: Compiler):
    first = compiler.compile(example("matmul_autotuned"), lambda _: None)
    assert len(first.launches) >= 2
    assert len({launch.config for launch in first.launches}) == len(first.launches)
    second = compiler.compile(example("matmul_autotuned", launch=1), lambda _: None)
    assert second.manifest.launch.config == first.launches[1].config
    assert second.manifest.kernel.arguments != first.manifest.kernel.arguments
    for compiled in (first, second):
        stages = compiled.manifest.stages
        assert [p.name for p in stages[1].passes].count("convert-triton-to-tritongpu") == 1


def test_given_arguments_compile_without_the_launch_code(compiler: Compiler):
    source = (EXAMPLES / "vector_add.py").read_text()
    captured = compiler.compile(CompileSpec(source=source, target="sm_80"), lambda _: None).manifest
    arguments = {
        a.name: a.type + (f":{a.divisibility}" if a.divisibility else "")
        for a in captured.kernel.arguments
        if a.type != "constexpr"
    }
    constexprs = {a.name: a.value for a in captured.kernel.arguments if a.type == "constexpr"}
    told = CompileSpec(source=source, target="sm_80", arguments=arguments, constexprs=constexprs)
    given = compiler.compile(told, lambda _: None).manifest
    assert given.kernel.origin == "given"
    assert given.stages == captured.stages


def test_none_and_dtypes_as_arguments(compiler: Compiler):
    source = (
        "import triton, triton.language as tl\n@triton.jit\ndef k(x, bias, D: tl.constexpr):\n"
        "    v = tl.load(x)\n    if bias is not None:\n        v += tl.load(bias)\n    tl.store(x, v.to(D))\n"
    )
    spec = CompileSpec(
        source=source, target="sm_80", arguments={"x": "*fp16", "bias": "None"}, constexprs={"D": "tl.float16"}
    )
    compiled = compiler.compile(spec, lambda _: None)
    assert compiled.manifest.status == "ok", compiled.manifest.failure
    assert [a.type for a in compiled.manifest.kernel.arguments] == ["*fp16", "constexpr", "constexpr"]


def test_options_come_from_the_backends_own_class(compiler: Compiler):
    names = {field.name for field in compiler.options["cuda"]}
    assert {"num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion"} <= names
    compiled = compiler.compile(example("vector_add", options={"num_warps": 8, "maxnreg": 64}), lambda _: None)
    assert compiled.manifest.options["num_warps"] == 8
    ptx = compiled.blobs[compiled.manifest.artifact("ptx").digest]
    assert b".maxnreg 64" in ptx
    assert b".reqntid 256" in ptx
    with pytest.raises(OptionError, match="num_warp"):
        compiler.check(example("vector_add", options={"num_warp": 8}))


def test_an_unknown_target_names_those_there_are(compiler: Compiler):
    with pytest.raises(UnknownTargetError, match="sm_120"):
        compiler.check(example("vector_add", target="sm_12"))


NVIDIA = [chip.arch for chip in CHIPS.values() if chip.backend.name == "cuda"]


@pytest.mark.parametrize("target", NVIDIA)
def test_every_target_reaches_sass(compiler: Compiler, target: str):
    compiled = compiler.compile(example("vector_add", target=target), lambda _: None)
    assert compiled.manifest.status == "ok", compiled.manifest.failure
    assert f".target {target}" in compiled.blobs[compiled.manifest.artifact("ptx").digest].decode()
    assert compiled.manifest.artifact("sass")


def test_remarks_are_tied_to_lines(compiler: Compiler):
    source = (
        "import triton, triton.language as tl\n@triton.jit\ndef k(x, n, B: tl.constexpr):\n"
        "    at = tl.arange(0, B)\n    v = tl.load(x + at * n, mask=at < n)\n    tl.store(x + at, v, mask=at < n)\n"
    )
    spec = CompileSpec(source=source, target="sm_90", arguments={"x": "*fp32", "n": "i32"}, constexprs={"B": 1024})
    remarks = [d for d in compiler.compile(spec, lambda _: None).manifest.diagnostics if d.severity == "remark"]
    assert {d.line for d in remarks} >= {5}
    assert all(d.file == "kernel.py" for d in remarks)


def test_compile_key_covers_every_input(compiler: Compiler):
    base = example("vector_add")
    key = base.compile_key(compiler.toolchain)
    changed = [
        {"source": base.source + "\n"},
        {"target": "sm_80"},
        {"options": {"num_warps": 8}},
        {"launch": 1},
        {"kernel": "add_kernel"},
        {"arguments": {"x": "i32"}},
        {"constexprs": {"B": 1}},
        {"file": "other.py"},
    ]
    keys = {base.model_copy(update=change).compile_key(compiler.toolchain) for change in changed}
    assert len(keys | {key}) == len(changed) + 1
    assert base.compile_key(compiler.toolchain) == key
