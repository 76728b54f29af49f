"""What the user's source may do inside the child without deciding what is recorded, and how its faults are told."""

from __future__ import annotations

import pytest

from pipelines.trace import Manifest
from pipelines.triton_path.compile import Compiler
from tests.pipelines.triton_path.sources import (
    BOTH,
    BUFFER,
    CAPTURED,
    GIVEN,
    GUARDED,
    IMPORTS,
    KERNEL,
    LAUNCH,
    PLANTS,
    compiled,
    fails,
    line_of,
    manifest,
    succeeds,
)


@pytest.fixture(scope="module")
def plain(compiler: Compiler) -> Manifest:
    """A source of as many lines that sets nothing."""
    return succeeds(compiler, f"import os\npass\n{CAPTURED}")


@pytest.mark.parametrize(
    "setting",
    [
        'os.environ["MLIR_ENABLE_DUMP"] = "0"',
        'os.environ["MLIR_ENABLE_DUMP"] = "another_kernel"',
        'os.environ["MLIR_DUMP_PATH"] = "/nowhere/dump"',
        'os.environ["TRITON_CACHE_DIR"] = "/nowhere/cache"',
        'os.environ["TRITON_ALWAYS_COMPILE"] = "0"',
        'os.environ["TRITON_INTERPRET"] = "1"',
        'os.environ["TRITON_OVERRIDE_ARCH"] = "sm90"',
        'os.environ["TRITON_PTXAS_PATH"] = "/bin/true"',
        'os.environ["TRITON_FRONT_END_DEBUGGING"] = "1"',
        'os.environ["TMPDIR"] = "/nowhere"; import tempfile; tempfile.tempdir = "/nowhere"',
        "os.environ.clear()",
        "import triton; triton.knobs.compilation.always_compile = False; triton.knobs.cache.dir = '/nowhere'",
        "os.mkdir('below'); os.chdir('below')",
        "os.mkdir('below'); os.chdir('below'); os.rmdir('../below')",
        "import sys; sys.argv.append('--flag')",
    ],
)
def test_the_sources_settings_change_nothing_that_is_recorded(compiler: Compiler, plain: Manifest, setting: str):
    made = succeeds(compiler, f"import os\n{setting}\n{CAPTURED}")
    assert made.stages == plain.stages
    assert made.artifacts == plain.artifacts


def test_settings_change_nothing_where_arguments_are_given(compiler: Compiler, plain: Manifest):
    settings = "os.environ.update(MLIR_ENABLE_DUMP='0', TRITON_INTERPRET='1'); os.mkdir('below'); os.chdir('below')"
    made = succeeds(compiler, f"import os\n{settings}\n{CAPTURED}", **GIVEN)
    assert made.stages == plain.stages
    assert made.artifacts == plain.artifacts


@BOTH
def test_a_setting_of_the_code_generator_is_the_sources_own(compiler: Compiler, given: dict):
    body = KERNEL.replace("x * 2", "x * 2 + x")
    source = f'import os\nos.environ["TRITON_DEFAULT_FP_FUSION"] = "0"\n{IMPORTS}{body}{BUFFER}{GUARDED}'
    made = succeeds(compiler, source, **given)
    assert made.options["enable_fp_fusion"] is False
    assert any("--fmad=false" in command for command in made.toolchain.commands)


@BOTH
def test_the_interpreter_that_a_source_insists_on_is_named(compiler: Compiler, given: dict):
    source = f"import triton\ntriton.knobs.runtime.interpret = True\n{IMPORTS}{KERNEL}{BUFFER}"
    message, _ = fails(compiler, source, **given)
    assert "interpreter" in message


@BOTH
def test_what_a_source_compiles_itself_is_not_recorded(compiler: Compiler, given: dict):
    own = (
        "from triton.compiler import ASTSource\nfrom triton.backends.compiler import GPUTarget\n"
        "signature = {'x_ptr': '*fp32', 'n': 'i32', 'BLOCK': 'constexpr'}\n"
        "triton.compile(ASTSource(kernel, signature, {'BLOCK': 64}), target=GPUTarget('cuda', 90, 32))\n"
    )
    made = succeeds(compiler, CAPTURED.replace(GUARDED, own + GUARDED), **given)
    assert (
        made.stages == succeeds(compiler, CAPTURED.replace(GUARDED, "\n" * own.count("\n") + GUARDED), **given).stages
    )


def test_a_program_reads_its_own_arguments(compiler: Compiler):
    flags = (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--n')\n"
        "assert parser.parse_args().n is None\n"
    )
    succeeds(compiler, CAPTURED.replace(GUARDED, flags + GUARDED))


@pytest.mark.parametrize(
    ("file", "given"),
    [("triton.py", GIVEN), ("json.py", GIVEN), ("kernel.v2.py", GIVEN), ("compiler.py", GIVEN), ("triton.py", {})],
)
def test_a_file_may_be_called_as_a_module_is(compiler: Compiler, file: str, given: dict):
    source = (
        "from __future__ import annotations\nimport dataclasses, json, types\n"
        f"@dataclasses.dataclass\nclass D:\n    a: int\n{CAPTURED}"
    )
    made = compiled(compiler, source, file=file, **given)
    assert made.manifest.status == "ok", made.manifest.failure
    text = made.blobs[made.manifest.stage("ttir").input].decode()
    assert f'"{file}":' in text
    _, errors = fails(compiler, source.replace("x * 2", "x * nothing"), file=file, **given)
    assert [(error.file, error.line) for error in errors] == [(file, line_of(source, "x * 2"))]


@BOTH
def test_functions_are_of_the_files_module_in_ir(compiler: Compiler, given: dict):
    helper = (
        "@triton.jit(noinline=True)\ndef helper(n, F: tl.constexpr):\n    return F(n)\n\n"
        "@triton.jit\ndef f(n):\n    return n\n\n"
    )
    source = CAPTURED.replace(KERNEL, helper + KERNEL.replace("at < n", "at < helper(n, f)"))
    made = compiled(compiler, source, file="mine.py", kernel="kernel", **given)
    assert made.manifest.status == "ok", made.manifest.failure
    text = made.blobs[made.manifest.stage("ttir").input].decode()
    assert "@mine.helper__i32_cJITFunction(mine:f)" in text.replace('"', "").replace("\\", "")


GLUON = (
    "import triton\nfrom triton.experimental import gluon\nfrom triton.experimental.gluon import language as gl\n"
    f"{BUFFER}@gluon.jit\ndef kernel(x_ptr, n, BLOCK: gl.constexpr):\n"
    "    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])\n"
    "    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)\n"
    f"    gl.store(x_ptr + at, gl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)\n\n{GUARDED}"
)


@BOTH
def test_a_gluon_kernel_begins_at_ttgir(compiler: Compiler, given: dict):
    made = compiled(compiler, GLUON, **given)
    assert made.manifest.status == "ok", made.manifest.failure
    assert [stage.name for stage in made.manifest.stages] == ["ttgir", "llvm-dialect"]
    assert b"#ttg.blocked<{sizePerThread = [1]" in made.blobs[made.manifest.stage("ttgir").input]
    assert {"llvm-ir", "ptx", "cubin", "sass"} <= {artifact.name for artifact in made.manifest.artifacts}
    assert b"site-packages" not in b"".join(made.blobs.values())
    assert made.manifest.stages == manifest(compiler, GLUON, **({} if given else GIVEN)).stages


MEMORY = "bytearray(1 << 45)"


@pytest.mark.parametrize(
    "source",
    [
        f"{IMPORTS}{KERNEL}{MEMORY}\n",
        f"{IMPORTS}{KERNEL}{BUFFER}{LAUNCH}{MEMORY}\n",
        f"{IMPORTS}{KERNEL}try:\n    {MEMORY}\nexcept MemoryError as error:\n    raise RuntimeError('no') from error\n",
        f"{PLANTS}{CAPTURED}CUDABackend.make_llir = lambda *_: {MEMORY}\n",
        f"{IMPORTS}@triton.constexpr_function\ndef large():\n    return {MEMORY}\n\n"
        f"{KERNEL.replace('x * 2', 'x * large()')}{BUFFER}{GUARDED}",
    ],
    ids=["module", "after a launch", "wrapped", "stage", "front end"],
)
def test_too_little_memory_is_a_limit_wherever_it_shows(compiler: Compiler, source: str):
    made = compiled(compiler, source)
    assert made.manifest.failure.kind == "memory"
    assert not made.cacheable


def test_a_crash_prints_nothing_of_the_servers_files(compiler: Compiler):
    source = f"{PLANTS}{CAPTURED}CUDABackend.make_llir = lambda *_: ctypes.string_at(0)\n"
    made = manifest(compiler, source)
    assert made.failure.kind == "abort"
    assert ".py" not in made.failure.message


def test_commands_name_no_file_of_this_machine(compiler: Compiler):
    ptxas, nvdisasm = succeeds(compiler, CAPTURED).toolchain.commands
    assert ptxas.startswith("ptxas ")
    assert ptxas.endswith(" kernel.ptx -o kernel.cubin")
    assert nvdisasm.endswith(" kernel.cubin")


def test_what_nvdisasm_refuses_is_told_in_its_own_words(compiler: Compiler):
    made = manifest(compiler, f"{PLANTS}{CAPTURED}CUDABackend.make_cubin = lambda *_: b'not a cubin'\n")
    (told,) = [item for item in made.diagnostics if "nvdisasm" in item.message]
    assert "fatal" in told.message
    assert "Traceback" not in told.message


def test_a_stage_that_fails_after_its_passes_shows_what_they_left(compiler: Compiler):
    made = compiled(
        compiler, f"{PLANTS}{CAPTURED}def fails(*_):\n    raise ValueError('after')\nllvm.init_targets = fails\n"
    )
    whole = compiled(compiler, f"{PLANTS}{CAPTURED}def fails(*_):\n    raise ValueError('after')\npass\n")
    assert "after" in made.manifest.failure.message
    last = made.manifest.stage("llvm-dialect").passes[-1]
    assert not last.failed
    assert made.blobs[last.text].count(b"\n") > 10
    assert [p.name for p in made.manifest.stages[-1].passes] == [p.name for p in whole.manifest.stages[-1].passes]
