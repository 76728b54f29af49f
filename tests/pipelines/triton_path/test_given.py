"""Kernels from given arguments and options, held against what a launch makes of the same."""

from __future__ import annotations

import json
import re

from pipelines.triton_path.compile import Compiler
from tests.pipelines.triton_path.sources import (
    BOTH,
    BUFFER,
    CAPTURED,
    IMPORTS,
    compiled,
    fails,
    succeeds,
)


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
    made = succeeds(compiler, source.replace("a['n']", "a['x_ptr']"), arguments={"x_ptr": "*fp32"})
    assert [a.name for a in made.kernel.arguments if a.guessed] == ["B"]
    assert any("B=" in item.message and "TypeError" in item.message for item in made.diagnostics)


def test_a_heuristic_that_reads_only_what_is_given_is_no_guess(compiler: Compiler):
    source = (
        f"{IMPORTS}@triton.heuristics({{'EVEN': lambda a: a['n'] % a['BLOCK'] == 0, "
        "'TWICE': lambda a: 2 * a['BLOCK']})\n"
        "@triton.jit\ndef kernel(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, TWICE: tl.constexpr):\n"
        "    tl.store(x_ptr + tl.arange(0, TWICE), n + EVEN)\n"
    )
    made = succeeds(compiler, source, arguments={"x_ptr": "*fp32", "n": "i32"}, constexprs={"BLOCK": 8})
    assert {a.name: (a.value, a.guessed) for a in made.kernel.arguments if a.type == "constexpr"} == {
        "BLOCK": (8, False),
        "EVEN": (True, True),
        "TWICE": (16, False),
    }


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
    fields = {field.name: field for field in compiler.options["cuda"]}
    assert {fields[name].type for name in ("num_warps", "num_stages")} == {"int"}
    assert fields["maxnreg"].type == "int | None"
    assert fields["enable_fp_fusion"].type == "bool"
    assert fields["ptx_options"].type == "str | None"
    assert fields["supported_fp8_dtypes"].type == "tuple[str, ...]"
    for options in compiler.options.values():
        assert all("typing" not in field.type and "class" not in field.type for field in options)
        told = json.dumps([field.model_dump(mode="json") for field in options])
        assert "/" not in re.sub(r"<triton>/backends/\w+/lib/", "", told)


def test_a_list_is_an_options_tuple(compiler: Compiler):
    made = succeeds(compiler, CAPTURED, options={"supported_fp8_dtypes": ["fp8e5"]})
    assert made.options["supported_fp8_dtypes"] == ["fp8e5"]
