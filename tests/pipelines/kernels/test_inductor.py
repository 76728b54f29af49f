"""What TorchInductor writes compiles as it is pasted, without torch."""

from __future__ import annotations

import ast
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.kernels.inductor import blocks, source
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.spec import CompileSpec
from tests.conftest import GOLDEN

OUTPUT = (GOLDEN / "inductor_output.py").read_text()
KERNEL = """
import triton
import triton.language as tl
{imports}
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
from torch._inductor.runtime.hints import AutotuneHint, ReductionHint, TileHint, DeviceProperties
triton_helpers.set_driver_to_gpu()

@triton_heuristics.{decorator}
@triton.jit
def kernel({arguments}):
{body}
"""
LOOPED = """\
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    mean = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    m2 = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    weight = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        tmp0 = tl.load(in_ptr0 + (rindex + rnumel*xindex), rmask & xmask, other=0.0)
        mean_next, m2_next, weight_next = triton_helpers.welford_reduce(tmp0, mean, m2, weight, roffset == 0)
        mean = tl.where(rmask & xmask, mean_next, mean)
        m2 = tl.where(rmask & xmask, m2_next, m2)
        weight = tl.where(rmask & xmask, weight_next, weight)
    a, b, c = triton_helpers.welford(mean, m2, weight, 1)
    tl.store(out_ptr0 + (xindex), a[:, None], xmask)
    tl.store(out_ptr1 + (xindex), (b / c)[:, None], xmask)
"""


def spec(text: str, **more: object) -> CompileSpec:
    return CompileSpec.model_validate({"source": text, "target": "sm_90", **more})


def line_of(text: str) -> int:
    return OUTPUT[: OUTPUT.index(text)].count("\n") + 1


def test_every_kernel_of_an_output_file_is_compiled_with_the_signature_that_it_carries(compiler: Compiler) -> None:
    first = compiler.compile(spec(OUTPUT), lambda _: None)
    assert [launch.kernel for launch in first.launches] == [
        "triton_poi_fused_add_gelu_0",
        "triton_per_fused_native_layer_norm_1",
    ]
    for index in range(2):
        manifest = compiler.compile(spec(OUTPUT, launch=index), lambda _: None).manifest
        assert (manifest.status, manifest.kernel.origin) == ("ok", "captured"), manifest.failure
        assert {a.name: (a.type, a.divisibility) for a in manifest.kernel.arguments if a.type.startswith("*")} == (
            {"in_out_ptr0": ("*bf16", 16), "in_ptr0": ("*bf16", 16)},
            {"in_ptr0": ("*bf16", 16), "out_ptr0": ("*fp32", 16), "out_ptr1": ("*i64", None)},
        )[index]
        block = manifest.kernel.arguments[-1]
        assert (block.name, block.guessed, block.value) == ("XBLOCK", True, (1024, 1)[index])
        assert any("XBLOCK and num_warps are a first choice" in note.message for note in manifest.diagnostics)


def test_lines_are_those_of_the_pasted_file(compiler: Compiler) -> None:
    compiled = compiler.compile(spec(OUTPUT), lambda _: None)
    ttir = compiled.blobs[compiled.manifest.stage("ttir").passes[-1].text].decode()
    assert f'"kernel.py":{line_of("tmp5 = libdevice.erf")}:' in ttir
    ptx = compiled.blobs[compiled.manifest.artifact("ptx").digest].decode()
    assert f"kernel.py:{line_of('tmp2 = tmp0 + tmp1')}" in ptx


def test_an_error_points_at_the_line_inside_the_embedded_text(compiler: Compiler) -> None:
    broken = OUTPUT.replace("tmp5 = libdevice.erf(tmp4)", "tmp5 = libdevice.erf(missing)")
    manifest = compiler.compile(spec(broken), lambda _: None).manifest
    assert "missing" in manifest.failure.message
    assert line_of("tmp5 = libdevice.erf") in [found.line for found in manifest.diagnostics]


def test_a_chosen_block_can_be_given(compiler: Compiler) -> None:
    given = spec(OUTPUT, constexprs={"XBLOCK": 512}, kernel="triton_poi_fused_add_gelu_0")
    block = compiler.compile(given, lambda _: None).manifest.kernel.arguments[-1]
    assert (block.value, block.guessed) == (512, False)


@pytest.mark.parametrize(
    ("imports", "decorator", "arguments", "body"),
    [
        pytest.param(
            "from triton.compiler.compiler import AttrsDescriptor",
            "reduction(size_hints=[64, 4096], reduction_hint=ReductionHint.INNER, filename=__file__, triton_meta="
            "{'signature': {0: '*fp32', 1: '*fp32', 2: '*fp32', 3: 'i32', 4: 'i32'}, 'constants': {}, 'configs': "
            "[AttrsDescriptor(divisible_by_16=(0, 1, 2, 4), equal_to_1=())]}, inductor_meta={})",
            "in_ptr0, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK : tl.constexpr, RBLOCK : tl.constexpr",
            LOOPED,
            id="signature by position",
        ),
        pytest.param(
            "",
            "user_autotune(configs=[{'num_warps': 8, 'num_stages': 3, 'BLOCK': 512}], triton_meta={'signature': "
            "{'x': '*fp16', 'n': 'i32', 'BLOCK': 'constexpr'}, 'constants': {}, 'configs': [{}]})",
            "x, n, BLOCK : tl.constexpr",
            "    at = tl.arange(0, BLOCK)\n    tl.store(x + at, tl.load(x + at, at < n), at < n)\n",
            id="the user's own kernel",
        ),
        pytest.param(
            "",
            "template(num_stages=2, num_warps=8, triton_meta={'signature': {'arg_A': '*fp16', 'out_ptr0': '*fp16'},"
            " 'constants': {}, 'configs': [{(0,): [['tt.divisibility', 16]]}]})",
            "arg_A, out_ptr0",
            "    BLOCK_M : tl.constexpr = 64\n    rm = tl.arange(0, BLOCK_M)\n    a = tl.load(arg_A + rm[:, None] * 64 "
            "+ rm[None, :])\n    tl.store(out_ptr0 + rm[:, None] * 64 + rm[None, :], tl.dot(a, a).to(tl.float16))\n",
            id="a template",
        ),
    ],
)
def test_each_kind_of_decorator_and_of_signature(
    compiler: Compiler, imports: str, decorator: str, arguments: str, body: str
) -> None:
    text = KERNEL.format(imports=imports, decorator=decorator, arguments=arguments, body=body)
    manifest = compiler.compile(spec(text), lambda _: None).manifest
    assert manifest.status == "ok", manifest.failure
    pointers = [a for a in manifest.kernel.arguments if a.type.startswith("*")]
    assert pointers
    if "num_warps" in decorator:
        assert manifest.options["num_warps"] == 8


def test_a_decorator_without_a_signature_says_what_it_lacks(compiler: Compiler) -> None:
    text = KERNEL.format(
        imports="", decorator="template(triton_meta={'signature': {'x': '*fp32'}})", arguments="x, BLOCK: tl.constexpr",
        body="    tl.store(x + tl.arange(0, BLOCK), 0.0)\n",
    )  # fmt: skip
    manifest = compiler.compile(spec(text), lambda _: None).manifest
    assert "gives no value for BLOCK" in manifest.failure.message


def test_only_what_makes_kernels_is_run() -> None:
    kept = ast.unparse(source.kernels_only(ast.parse(OUTPUT)))
    assert kept.splitlines() == [
        "import math", "from math import inf, nan", "import triton", "import triton.language as tl"
    ]  # fmt: skip
    names = [item.name for item in source.embedded(ast.parse(OUTPUT))]
    assert names == ["triton_poi_fused_add_gelu_0", "triton_per_fused_native_layer_norm_1"]
    assert not source.is_output(ast.parse("import triton\n@triton.jit\ndef kernel(x):\n    pass\n"))


@given(st.lists(st.integers(1, 1 << 24), min_size=1, max_size=3))
def test_a_pointwise_tile_is_of_powers_of_two_within_the_tensor(sizes: list[int]) -> None:
    hints = dict(zip("xyz", sizes, strict=False))
    made = blocks.pointwise(hints)
    for axis, size in hints.items():
        block = made.sizes[f"{axis.upper()}BLOCK"]
        assert block & (block - 1) == 0
        assert 1 <= block <= blocks.power_of_two(size)
    assert made.num_warps in (1, 2, 4, 8)


@given(st.integers(1, 1 << 20), st.integers(1, 1 << 16), st.sampled_from(["INNER", "OUTER", "OUTER_TINY", "DEFAULT"]))
def test_a_reduction_tile_stays_within_what_triton_holds(across: int, length: int, hint: str) -> None:
    looped = blocks.reduction({"x": across, "r0_": length}, hint)
    assert math.prod(looped.sizes.values()) <= 1 << 20
    assert looped.sizes["R0_BLOCK"] <= blocks.power_of_two(length)
    assert blocks.persistent({"x": across, "r0_": length}, hint).sizes["XBLOCK"] <= blocks.power_of_two(across)


def test_texts_that_name_their_kernels_alike_are_all_compiled(compiler: Compiler) -> None:
    """Inductor names every kernel ``triton_`` unless it is told to name them apart."""
    names = ("triton_poi_fused_add_gelu_0", "triton_per_fused_native_layer_norm_1")
    alike = OUTPUT
    for name in names:
        alike = alike.replace(f"def {name}(", "def triton_(").replace(f"triton('{name}'", "triton('triton_'")
    first = compiler.compile(spec(alike), lambda _: None)
    assert [launch.kernel for launch in first.launches] == ["triton_", "triton_"]
    for index, name in enumerate(names):
        chosen = compiler.compile(spec(alike, kernel=name), lambda _: None).manifest
        numbered = compiler.compile(spec(alike, launch=index), lambda _: None).manifest
        assert chosen.kernel.arguments == numbered.kernel.arguments
        assert numbered.kernel.arguments[-1].guessed
    assert [launch.kernel for launch in compiler.compile(spec(OUTPUT), lambda _: None).launches] == list(names)
