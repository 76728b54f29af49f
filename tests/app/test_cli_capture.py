"""What ``loupe capture`` makes of a program: the traces, and that they are those of ``loupe compile``."""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.spec import CompileSpec
from tests.app.capturing import PROGRAMS, ROOT, SECRET, Captured


def test_every_kernel_becomes_a_trace(trained: Captured) -> None:
    assert trained.code == 0, trained.err
    assert trained.out.startswith("trained with ['a', '--json'] on 6 launches None\n")
    told = [(t["kernel"], t["status"], t["compiled"]) for t in trained.told["traces"]]
    assert told == [("add", "ok", 2), ("total", "ok", 1), ("tuned", "ok", 1), ("tuned", "ok", 1)]
    assert trained.told["refused"] == []
    for file in trained.files():
        file.verify()
        assert [stage.name for stage in file.manifest.stages] == ["ttir", "ttgir", "llvm-dialect"]
        assert {a.name for a in file.manifest.artifacts} == {"llvm-ir", "ptx", "cubin", "ptxas-log", "sass"}
        assert file.manifest.kernel.origin == "captured"
        assert file.manifest.kernel.file == "kernels.py"


def test_launches_are_those_that_the_program_made(trained: Captured) -> None:
    assert trained.manifest("add").launch is None
    launch = trained.manifest("total").launch
    assert launch is not None
    assert launch.grid == (1, 2, 1)
    assert [(a.name, a.dtype, a.shape, a.strides, a.value) for a in launch.arguments] == [
        ("x_ptr", "fp32", (1000,), (1,), None),
        ("out_ptr", "fp32", (1000,), (1,), None),
        ("BLOCK", "int", None, None, 1024),
    ]
    configs = [f.manifest.launch for f in trained.files() if f.manifest.kernel.name == "tuned"]
    assert [(c.grid, (c.config or "").split(",")[0]) for c in configs if c] == [
        ((8, 1, 1), "BLOCK: 128"),
        ((4, 1, 1), "BLOCK: 256"),
    ]


def test_no_path_of_the_machine_is_in_a_trace(trained: Captured) -> None:
    forms = [text.encode() for text in (SECRET, str(ROOT), str(trained.folder), sys.prefix)]
    spelled = "\n".join(f".b8 {byte}" for byte in SECRET.encode()).encode()
    for file in trained.files():
        manifest = file.manifest.model_dump_json().encode()
        texts = {name: file.blob(name) for name in file.manifest.digests()}
        assert [(form, name) for form in forms for name, text in texts.items() if form in text] == []
        assert [form for form in forms if form in manifest] == []
        assert [name for name, text in texts.items() if spelled in text] == []


def test_trace_equals_what_loupe_compiles(trained: Captured, tmp_path: Path) -> None:
    """Every text is the same but the PTX's debug section, whose folder has another length, and what is made of it."""
    spec = CompileSpec(
        source=(PROGRAMS / "kernels.py").read_text(),
        file="kernels.py",
        kernel="add",
        arguments={"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "n": "i32"},
        constexprs={"BLOCK": 128},
        target="sm_90",
    )
    compiler = Compiler(tmp_path / "sandbox")
    try:
        compiler.start()
        made = compiler.compile(spec, lambda _: None)
    finally:
        compiler.close()
    (file,) = (f for f in trained.files() if f.manifest.kernel.name == "add")
    ours, theirs = made.manifest, file.manifest
    assert theirs.stages == ours.stages
    assert theirs.options == ours.options
    assert theirs.kernel.arguments == ours.kernel.arguments
    assert theirs.kernel.source == ours.kernel.source
    assert theirs.launch_metadata == ours.launch_metadata
    assert theirs.resources == ours.resources
    assert theirs.toolchain.commands == ours.toolchain.commands
    assert set(theirs.toolchain.tools) <= set(ours.toolchain.tools)
    digests = {a.name: a.digest for a in ours.artifacts}
    same = [a.name for a in theirs.artifacts if a.digest == digests[a.name]]
    assert {"llvm-ir"} <= set(same)

    def code(text: bytes) -> bytes:
        return text.partition(b".debug_abbrev")[0]

    ptx = theirs.artifact("ptx")
    assert ptx is not None
    assert code(file.blob(ptx.digest)) == code(made.blobs[digests["ptx"]])
    sass = theirs.artifact("sass")
    assert sass is not None
    assert file.blob(sass.digest).splitlines()[10:] == made.blobs[digests["sass"]].splitlines()[10:]
