"""Every way a compilation can end early gives a trace that holds all there was, and says what happened."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.sandbox import Limits
from pipelines.trace import Manifest
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.spec import Compiled, CompileSpec
from tests.conftest import EXAMPLES

KERNEL = """
import os, signal, time
import triton
import triton.language as tl
from triton._C.libtriton import ir, llvm, passes
from triton.backends.nvidia.compiler import CUDABackend

@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(x_ptr + at, x / tl.sum(x, axis=0), mask=at < n)
"""
ARGUMENTS = {"x_ptr": "*fp32:16", "n": "i32"}


def spec(source: str = KERNEL, **more: object) -> CompileSpec:
    fields = {
        "source": source,
        "kernel": "kernel",
        "arguments": ARGUMENTS,
        "constexprs": {"BLOCK": 256},
        "target": "sm_90",
    }
    return CompileSpec.model_validate({**fields, **more})


def run(compiler: Compiler, what: CompileSpec) -> Compiled:
    compiled = compiler.compile(what, lambda _: None)
    compiled.manifest.check()
    assert set(compiled.manifest.digests()) <= set(compiled.blobs)
    return compiled


def names(manifest: Manifest, stage: str) -> list[str]:
    return [item.argument for item in manifest.stage(stage).passes]


@pytest.fixture
def whole(compiler: Compiler) -> Compiled:
    return run(compiler, spec())


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compiler]:
    """A compiler with tight limits."""
    limits = dataclasses.replace(Limits(), wall_s=3.0, memory=2 << 30, disk=64 << 20)
    compiler = Compiler(tmp_path_factory.mktemp("quick"), limits=limits)
    compiler.start()
    yield compiler
    compiler.close()


PLANTS = {
    "abort": "os.abort()",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "exit": "os._exit(3)",
}


@pytest.mark.parametrize("plant", ["abort", "segfault", "killed", "exit"])
def test_a_dying_compiler_loses_no_snapshot(compiler: Compiler, whole: Compiled, plant: str):
    """The process dies when the ttgir passes have run and all their dumps are still in its buffer."""
    source = (
        f"{KERNEL}\ndef dies(self, src, metadata, options, capability):\n"
        f"    {PLANTS[plant]}\n\nCUDABackend.make_llir = dies\n"
    )
    compiled = run(compiler, spec(source))
    manifest = compiled.manifest
    assert manifest.status == "failed"
    assert manifest.failure.kind == "abort"
    for stage in ("ttir", "ttgir"):
        assert names(manifest, stage) == names(whole.manifest, stage)
        ours = [compiled.blobs[p.text] for p in manifest.stage(stage).passes]
        assert ours == [whole.blobs[p.text] for p in whole.manifest.stage(stage).passes]


def test_an_abort_inside_a_stage_names_the_pass(compiler: Compiler, whole: Compiled):
    """After the passes of the LLVM dialect, before their output: the last pass has no successor to show its IR."""
    source = KERNEL + "\nllvm.init_targets = os.abort\n"
    manifest = run(compiler, spec(source)).manifest
    assert manifest.failure.kind == "abort"
    assert manifest.failure.stage == "llvm-dialect"
    assert names(manifest, "llvm-dialect") == names(whole.manifest, "llvm-dialect")
    *before, last = manifest.stage("llvm-dialect").passes
    assert not last.failed
    assert last.text is None
    assert manifest.failure.address == f"llvm-dialect:{before[-1].ordinal}"


def test_a_stage_that_fails_after_its_passes_keeps_what_they_left(compiler: Compiler, whole: Compiled):
    source = (
        KERNEL
        + "\nmake = CUDABackend.make_ttgir\ndef raises(*args):\n    make(*args)\n    raise ValueError('after')\n\n"
        "CUDABackend.make_ttgir = staticmethod(raises)\n"
    )
    compiled = run(compiler, spec(source))
    manifest = compiled.manifest
    assert "after" in manifest.failure.message
    ours, theirs = manifest.stage("ttgir").passes[-1], whole.manifest.stage("ttgir").passes[-1]
    assert not ours.failed
    assert compiled.blobs[ours.text] == whole.blobs[theirs.text]


def test_an_abort_inside_llvm_says_why_and_shows_what_it_was_given(compiler: Compiler):
    source = (
        "import triton, triton.language as tl\n@triton.jit\ndef kernel(x_ptr, n, BLOCK: tl.constexpr):\n"
        "    x = tl.load(x_ptr + tl.arange(0, BLOCK))\n"
        "    y = tl.inline_asm_elementwise('mov $0, $1;', '=r', [x], dtype=tl.float32, is_pure=True, pack=1)\n"
        "    tl.store(x_ptr + tl.arange(0, BLOCK), y)\n"
    )
    manifest = run(compiler, spec(source)).manifest
    assert manifest.failure.kind == "abort"
    assert "constraint" in manifest.failure.message
    assert manifest.failure.address.startswith("llvm-dialect:")
    assert manifest.resolve(manifest.failure.address).text


def test_a_failing_pass_keeps_its_ir_and_its_line(compiler: Compiler):
    source = (EXAMPLES / "fails_in_pass.py").read_text()
    compiled = run(compiler, CompileSpec(source=source, target="sm_90"))
    manifest = compiled.manifest
    failed = manifest.resolve(manifest.failure.address)
    assert failed.item.failed
    assert failed.item.name == "convert-triton-gpu-to-llvm"
    assert b"tt.map_elementwise" in compiled.blobs[failed.text]
    error = next(d for d in manifest.diagnostics if d.severity == "error")
    assert "map_elementwise" in source.splitlines()[error.line - 1]
    assert error.address == manifest.failure.address


def test_ptxas_errors_keep_the_ptx_and_point_into_it(compiler: Compiler):
    source = (EXAMPLES / "fails_in_ptxas.py").read_text()
    compiled = run(compiler, CompileSpec(source=source, target="sm_90"))
    manifest = compiled.manifest
    assert manifest.failure.address == "ptx"
    assert "ptxas rejects the PTX at line" in manifest.failure.message
    ptx = compiled.blobs[manifest.artifact("ptx").digest].decode().split("\n")
    at = [d for d in manifest.diagnostics if d.address == "ptx"]
    assert at
    assert all("rsqrt" in ptx[d.line - 1] for d in at)
    assert b"tmp" not in compiled.blobs[manifest.artifact("ptxas-log").digest]
    own = [d for d in manifest.diagnostics if d.file == "kernel.py"]
    assert own
    assert all("rsqrt" in source.splitlines()[d.line - 1] or "asm" in source.splitlines()[d.line - 1] for d in own)


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("tl.store(x_ptr, tl.nothing(1))", 4, "nothing"),
        ("tl.store(x_ptr, helper(n))", 7, "undefined_name"),
        ("tl.static_assert(BLOCK == 1, 'block must be one')", 4, "block must be one"),
    ],
)
def test_errors_in_the_kernel_show_the_users_line(compiler: Compiler, body: str, line: int, words: str):
    source = (
        "import triton, triton.language as tl\n@triton.jit\ndef kernel(x_ptr, n, BLOCK: tl.constexpr):\n"
        f"    {body}\n@triton.jit\ndef helper(n):\n    return undefined_name + n\n"
    )
    manifest = run(compiler, spec(source)).manifest
    assert manifest.failure.kind == "error"
    assert words in manifest.failure.message
    lines = [d.line for d in manifest.diagnostics if d.file == "kernel.py"]
    assert lines[-1] == line
    assert "/" not in manifest.failure.message.replace("</", "")


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("import triton\nx = = 1\n", 2, "invalid syntax"),
        ("import triton\n\nraise ValueError('mine')\n", 3, "mine"),
        ("import nowhere\n", 1, "nowhere"),
    ],
)
def test_errors_at_import_show_the_users_line(compiler: Compiler, source: str, line: int, words: str):
    manifest = run(compiler, spec(source)).manifest
    assert words in manifest.failure.message
    assert line in [d.line for d in manifest.diagnostics]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"kernel": "nothing"}, "no kernel 'nothing'"),
        ({"arguments": {"x_ptr": "*fp32:3"}}, "divisibility '3' is not a power of two"),
        ({"arguments": {"x_ptr": "*fp32", "n": "i33"}}, "'i33' is not a type"),
        ({"arguments": {**ARGUMENTS, "y": "i32"}}, "no argument 'y'"),
        ({"arguments": {"x_ptr": "(*fp32, (i32)"}}, "not closed"),
        ({"launch": 3}, "none numbered 3"),
        ({"arguments": None, "source": "import triton\n"}, "never launches"),
        ({"options": {"num_warps": 3}}, "power of 2"),
    ],
)
def test_a_request_that_cannot_be_met_says_what_to_change(compiler: Compiler, more: dict, words: str):
    manifest = run(compiler, spec(**more)).manifest
    assert manifest.status == "failed"
    assert words in manifest.failure.message


def test_a_timeout_keeps_what_was_there(quick: Compiler, whole: Compiled):
    source = KERNEL + "\nllvm.to_module = lambda *a: time.sleep(100)\n"
    compiled = run(quick, spec(source))
    manifest = compiled.manifest
    assert manifest.failure.kind == "timeout"
    assert "3 s" in manifest.failure.message
    assert not compiled.cacheable
    assert names(manifest, "ttgir") == names(whole.manifest, "ttgir")
    again = run(quick, spec())
    assert again.manifest.status == "ok"
    assert again.cacheable


def test_a_memory_limit_says_so(quick: Compiler):
    source = KERNEL + "\nCUDABackend.make_llir = lambda *a: bytearray(50 << 30)\n"
    compiled = run(quick, spec(source))
    assert compiled.manifest.failure.kind == "memory"
    assert not compiled.cacheable
    assert len(compiled.manifest.stages) == 2


def test_a_full_disk_says_so(quick: Compiler):
    source = KERNEL + "\nfor n in range(100):\n    open(f'f{n}', 'wb').write(bytes(1 << 20))\ntime.sleep(2)\n"
    compiled = run(quick, spec(source))
    assert compiled.manifest.failure.kind == "disk"
    assert not compiled.cacheable


@pytest.mark.parametrize(
    "forgery",
    [
        "open('launch.json', 'w').write('[' * 100000)",
        "open('launch.json', 'w').write('{\"name\": 1}')",
        'open(\'events.jsonl\', \'w\').write(\'{"event": "pipeline", "at": 0, "name": "make_ttir", "passes": 7}\\n\')',
        "import pickle; open('error.json', 'wb').write(pickle.dumps(print))",
        "open('metadata.json', 'w').write('{\"a\": \"' + 'x' * (8 << 20) + '\"}')",
        "open('launches.json', 'w').write('[{}]')",
        "open('metadata.json', 'w').write('{\"shared\": NaN}')",
        "os.symlink('/etc/passwd', 'ttir.out')",
        "os.mkfifo('ptx.out')",
        "os.mkdir('error.json')",
        "open('ptxas-log.out', 'w').write('ptxas /tmp/tmpabcdefgh.ptx, line 3; error : x')",
        "open('dump.mlir', 'w').write('// -----// IR Dump Before CSE: cse //----- //\\nx\\n' * 50000)",
        "open('dump.mlir', 'w').write('// -----// IR Dump Before ' + 'x' * 9000 + ' //----- //\\nmodule')",
        "open('ttir.out', 'w').truncate(65 << 20)",
        "open('ptxas-log.out', 'w').write('a/' * 2000000)",
        "open('launch.json', 'w').write('\"' + chr(92) + 'ud800' + '\"')",
    ],
)
def test_forged_results_are_refused_and_the_next_compile_works(quick: Compiler, forgery: str):
    """The forger ends the process itself, so that nothing of ours overwrites its files."""
    compiled = run(quick, spec(f"import os\n{forgery}\nos._exit(0)\n"))
    assert compiled.manifest.status == "failed"
    assert "root:" not in str([blob[:100] for blob in compiled.blobs.values()])
    assert run(quick, spec()).manifest.status == "ok"


def test_a_source_that_switches_the_dump_off_is_told(quick: Compiler):
    source = KERNEL + "\nir.pass_manager.enable_debug = lambda self: False\n"
    manifest = run(quick, spec(source)).manifest
    assert manifest.failure.kind == "invalid"
    assert "lacks passes of ttir" in manifest.failure.message


def test_noise_on_stderr_hides_no_error(quick: Compiler):
    source = (EXAMPLES / "fails_in_pass.py").read_text()
    noise = "\nimport sys\nfor n in range(100_000):\n    print('x' * 60, file=sys.stderr)\n"
    launch = source.index("if __name__")
    manifest = run(quick, CompileSpec(source=source[:launch] + noise + source[launch:], target="sm_90")).manifest
    assert "pack size must be a divisor" in manifest.failure.message


def test_more_messages_than_are_kept_are_counted_out(quick: Compiler):
    noise = "\nimport sys\nfor n in range(12_000):\n    print(f'kernel.py:1:1: remark: r{n}', file=sys.stderr)\n"
    compiled = run(quick, spec(KERNEL + noise))
    assert compiled.manifest.status == "ok"
    assert 1_000 < len(compiled.manifest.diagnostics) <= 10_000


def test_a_forged_pass_count_gives_no_more_than_the_dump_holds(quick: Compiler):
    plan = ",".join(f"p{n}" for n in range(30_000))
    source = KERNEL + (
        "\nimport json\n"
        f"open('events.jsonl','a').write(json.dumps({{'event':'pipeline','at':0,'name':'make_ttir','passes':'any({plan[:200000]})'}})+'\\n')\n"
    )
    manifest = run(quick, spec(source)).manifest
    assert sum(len(stage.passes) for stage in manifest.stages) < 200


def test_no_server_path_reaches_a_trace(compiler: Compiler):
    for source in (KERNEL, (EXAMPLES / "softmax.py").read_text()):
        compiled = run(
            compiler, spec(source, kernel=None) if source is KERNEL else CompileSpec(source=source, target="sm_80")
        )
        everything = compiled.manifest.canonical() + b"".join(compiled.blobs.values())
        assert b"site-packages" not in everything
        assert b"/slots" not in everything
        assert str(Path.home()).encode() not in everything
