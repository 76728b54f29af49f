"""What the user's source may do inside the child without deciding what is recorded, and how its faults are told."""

from __future__ import annotations

import json

import pytest

from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.options import OptionError
from tests.pipelines.triton_path.sources import (
    ARGUMENTS,
    BUFFER,
    CAPTURED,
    CONSTEXPRS,
    GUARDED,
    IMPORTS,
    KERNEL,
    LAMBDA,
    LAUNCH,
    compiled,
    fails,
    line_of,
    manifest,
    succeeds,
)

GIVEN = {"arguments": ARGUMENTS, "constexprs": CONSTEXPRS}
BOTH = pytest.mark.parametrize("given", [{}, GIVEN], ids=["captured", "given"])
PLANTS = (
    "import ctypes, os, sys\nfrom triton._C.libtriton import ir, llvm\n"
    "from triton.backends.nvidia.compiler import CUDABackend\n"
)


@BOTH
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
        'os.environ["TMPDIR"] = "/nowhere"',
        "os.environ.clear()",
        "import triton; triton.knobs.compilation.always_compile = False; triton.knobs.cache.dir = '/nowhere'",
        "os.mkdir('below'); os.chdir('below')",
        "os.mkdir('below'); os.chdir('below'); os.rmdir('../below')",
        "import sys; sys.argv.append('--flag')",
    ],
)
def test_the_sources_settings_change_nothing_that_is_recorded(compiler: Compiler, setting: str, given: dict):
    made = compiled(compiler, f"import os\n{setting}\n{CAPTURED}", **given)
    assert made.manifest.status == "ok", made.manifest.failure
    # Of the same size, which ptxas writes into the cubin.
    plain = compiled(compiler, f"import os\n{'#' * len(setting)}\n{CAPTURED}", **given)
    assert made.manifest.stages == plain.manifest.stages
    assert [a.digest for a in made.manifest.artifacts] == [a.digest for a in plain.manifest.artifacts]


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


@BOTH
@pytest.mark.parametrize("file", ["triton.py", "types.py", "json.py", "compiler.py", "kernel.v2.py", "pipelines.py"])
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


def test_a_name_that_a_kernel_cannot_use_is_shown_where_it_is_used(compiler: Compiler):
    message, [error] = fails(compiler, LAMBDA, **GIVEN)
    assert "Unsupported function referenced: <function <lambda>>" in message
    line = line_of(LAMBDA, "x * scale")
    assert (error.line, error.column) == (line, LAMBDA.splitlines()[line - 1].index("scale") + 1)
    calling = KERNEL.replace("kernel", "calling").replace("x * 2", "kernel(x_ptr, n, BLOCK)")
    _, [error] = fails(compiler, LAMBDA + calling, kernel="calling", **GIVEN)
    assert error.line == line


def test_an_error_without_a_place_is_at_the_kernel(compiler: Compiler):
    source = f"{IMPORTS}{KERNEL}".replace("@triton.jit", "@triton.jit(repr=lambda _: 'not a name')")
    message, [error] = fails(compiler, source, **GIVEN)
    assert "not a name" in message
    assert (error.file, error.line, error.column) == ("kernel.py", line_of(source, "def kernel"), 1)


def test_a_nested_kernels_column_counts_from_its_line(compiler: Compiler):
    body = KERNEL.replace("x * 2", "('é', x)[1] * nothing")
    source = (
        f"{IMPORTS}def make():\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
        + "    return kernel\n\nkernel = make()\n"
    )
    _, [error] = fails(compiler, source, **GIVEN)
    line = line_of(source, "nothing")
    assert (error.line, error.column) == (line, source.splitlines()[line - 1].index("nothing") + 1)


def test_of_two_functions_with_one_text_the_called_one_is_shown(compiler: Compiler):
    make = "def {0}():\n    @triton.jit\n    def helper(a):\n        return a + nothing\n    return helper\n\n"
    source = IMPORTS + make.format("first") + make.format("second") + "one, two = first(), second()\n"
    for called, definition in (("one", "def first"), ("two", "def second")):
        text = source + KERNEL.replace("x * 2", f"{called}(x)")
        _, errors = fails(compiler, text, kernel="kernel", **GIVEN)
        assert [error.line for error in errors] == [line_of(text, f"{called}(x)"), line_of(text, definition) + 3]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("raise type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})()", "Odd"),
        ("raise type('Odd', (Exception,), {'__str__': lambda self: exit()})()", "Odd"),
        ("raise SyntaxError()", "SyntaxError"),
        ("raise SyntaxError(None)", "SyntaxError"),
        ("raise KeyboardInterrupt()", "KeyboardInterrupt"),
        ("raise GeneratorExit()", "GeneratorExit"),
        ("raise BaseExceptionGroup('group', [SystemExit(), ValueError()])", "group"),
        ("raise ValueError(chr(0xD800))", "ud800"),
        ("raise type('E' * 9000, (Exception,), {})('long')", "long"),
        ("raise ValueError(object())", "<object object>"),
        ("from json import nothing", "<python>/lib"),
        ("raise ValueError(triton.__file__)", "<triton>/__init__.py"),
        ("import pipelines.trace; raise ValueError(pipelines.trace.__file__)", "<loupe>/pipelines/trace.py"),
        ("import os; raise ValueError(os.getcwd() + '/kernel.py')", "kernel.py"),
    ],
)
def test_any_exception_is_told_at_its_line(compiler: Compiler, end: str, words: str):
    source = f"{IMPORTS}{KERNEL}{end}\n"
    message, errors = fails(compiler, source, **GIVEN)
    assert words in message
    assert errors[-1].line == line_of(source, end)
    told = json.dumps([message, *(error.message for error in errors)])
    assert "0x" not in told
    assert "/work" not in told.replace("<loupe>", "")
    assert "slots" not in told


def test_a_crash_prints_nothing_of_the_servers_files(compiler: Compiler):
    source = f"{PLANTS}{CAPTURED}CUDABackend.make_llir = lambda *_: ctypes.string_at(0)\n"
    made = manifest(compiler, source)
    assert made.failure.kind == "abort"
    assert ".py" not in made.failure.message


def test_commands_name_no_file_of_this_machine(compiler: Compiler):
    source = f"import os, tempfile\ntempfile.tempdir = 'with space+é'\nos.mkdir(tempfile.tempdir)\n{CAPTURED}"
    ptxas, nvdisasm = succeeds(compiler, source).toolchain.commands
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


def test_a_default_is_specialized_as_a_launch_would(compiler: Compiler):
    source = (
        f"{IMPORTS}{BUFFER}@triton.jit\n"
        "def kernel(x_ptr, n=5, one=1, many=64, scale=0.5, wide: tl.int64 = 3, pair=(16, 3),\n"
        "           BLOCK: tl.constexpr = 4):\n"
        "    tl.store(x_ptr + tl.arange(0, BLOCK), (n + one + many + wide + pair[0] + pair[1]) * scale)\n\n"
        "kernel[(1,)](Buffer())\n"
    )
    captured = succeeds(compiler, source)
    given = succeeds(compiler, source, arguments={"x_ptr": "*fp32:16"})
    assert [argument.type for argument in captured.kernel.arguments][1:] == [
        "i32",
        "constexpr",
        "i32",
        "fp32",
        "i64",
        "(i32, i32)",
        "constexpr",
    ]
    assert given.kernel.arguments == captured.kernel.arguments
    assert given.stages == captured.stages


def test_a_heuristic_sees_the_ones_before_it_and_defaults(compiler: Compiler):
    source = (
        f"{IMPORTS}{BUFFER}@triton.heuristics({{'A': lambda a: 2 * a['BLOCK'], 'B': lambda a: a['A'] + a['n']}})\n"
        "@triton.jit\ndef kernel(x_ptr, n=4, BLOCK: tl.constexpr = 8, A: tl.constexpr = 0, B: tl.constexpr = 0):\n"
        "    tl.store(x_ptr, A + B)\n"
    )
    made = succeeds(compiler, source, arguments={"x_ptr": "*fp32"})
    assert {a.name: a.value for a in made.kernel.arguments if a.name in "AB"} == {"A": 16, "B": 20}
    message, _ = fails(compiler, source.replace("a['n']", "a['x_ptr']"), arguments={"x_ptr": "*fp32"})
    assert "give B" in message


@BOTH
def test_a_kernels_own_debug_is_honoured(compiler: Compiler, given: dict):
    source = CAPTURED.replace("@triton.jit\n", "@triton.jit(debug=True)\n").replace(
        "    x = tl.load", "    tl.device_assert(n > 0)\n    x = tl.load"
    )
    made = compiled(compiler, source, **given)
    assert made.manifest.options["debug"] is True
    assert b"__assertfail" in made.blobs[made.manifest.artifact("ptx").digest]


def test_any_number_of_values_cannot_be_given(compiler: Compiler):
    source = f"{IMPORTS}@triton.jit\ndef kernel(x_ptr, *rest):\n    tl.store(x_ptr, rest[0])\n"
    message, _ = fails(compiler, source, arguments={"x_ptr": "*i32", "rest": "i32"})
    assert "*rest" in message


def test_options_are_told_in_plain_types(compiler: Compiler):
    fields = {field.name: field for field in compiler.options}
    assert {fields[name].type for name in ("num_warps", "num_stages")} == {"int"}
    assert fields["maxnreg"].type == "int | None"
    assert fields["enable_fp_fusion"].type == "bool"
    assert fields["ptx_options"].type == "str | None"
    assert fields["supported_fp8_dtypes"].type == "tuple[str, ...]"
    assert all("typing" not in field.type and "class" not in field.type for field in compiler.options)
    assert "/" not in json.dumps([field.model_dump(mode="json") for field in compiler.options]).replace(
        "<triton>/backends/nvidia/lib/", ""
    )


def test_a_list_is_an_options_tuple(compiler: Compiler):
    made = succeeds(compiler, CAPTURED, options={"supported_fp8_dtypes": ["fp8e5"]})
    assert made.options["supported_fp8_dtypes"] == ["fp8e5"]


@pytest.mark.parametrize("options", [{"num_warps": 3}, {"num_ctas": 2}, {"maxnreg": 64, "num_warps": 0}])
def test_an_option_that_the_backend_refuses_is_named(compiler: Compiler, options: dict):
    try:
        message, _ = fails(compiler, CAPTURED, options=options)
    except OptionError as error:
        message = str(error)
    assert f"option {list(options)[-1]} cannot be" in message


def test_a_config_that_the_backend_refuses_is_named(compiler: Compiler):
    source = f"{IMPORTS}@triton.autotune(configs=[triton.Config({{}}, num_warps=3)], key=[])\n{KERNEL}"
    message, _ = fails(compiler, source, **GIVEN)
    assert "num_warps: 3" in message
    assert "power of 2" in message
