"""Kernels whose signature nobody gave and no launch code shows: they compile by a guess, which is always told."""

from __future__ import annotations

import pytest

from pipelines.trace import Manifest
from pipelines.triton_path.compile import Compiler
from tests.pipelines.triton_path.guessable import KERNELS
from tests.pipelines.triton_path.sources import (
    BUFFER,
    CONSTEXPRS,
    IMPORTS,
    KERNEL,
    LAUNCH,
    TUPLES,
    compiled,
    fails,
    line_of,
    manifest,
    succeeds,
)

TWO = KERNEL + "@triton.jit\ndef second(x_ptr, total, n):\n    tl.atomic_add(total, tl.load(x_ptr + n))\n"


def note(made: Manifest) -> str:
    (told,) = [item for item in made.diagnostics if item.severity == "note"]
    return told.message


@pytest.mark.parametrize("kind", KERNELS)
def test_a_kernel_without_launch_code_compiles_for_sm_90(compiler: Compiler, kind: str):
    made = succeeds(compiler, IMPORTS + KERNELS[kind], target="sm_90")
    assert made.kernel.origin == "guessed"
    told = note(made)
    assert all(f"{item.name}=" in told for item in made.kernel.arguments if item.guessed)
    assert any(item.guessed for item in made.kernel.arguments)


def test_a_kernel_that_cannot_be_guessed_is_told_beside_the_others(compiler: Compiler):
    source = IMPORTS + KERNEL + "@triton.jit\ndef several(x_ptr, *rest):\n    tl.store(x_ptr, rest[0])\n"
    made = succeeds(compiler, source)
    (left,) = [item.message for item in made.diagnostics if "left out" in item.message]
    assert left.startswith("several was left out: *rest takes any number of values")


def test_the_note_says_why_at_the_kernels_line(compiler: Compiler):
    made = succeeds(compiler, IMPORTS + KERNEL)
    (told,) = [item for item in made.diagnostics if item.severity == "note"]
    assert told.line == line_of(IMPORTS + KERNEL, "def kernel")
    for part in ("x_ptr=*fp16:16 (loaded from)", "BLOCK=1024 (the size of a block)", "does not launch this kernel"):
        assert part in told.message


def test_what_is_given_is_kept_and_the_rest_guessed(compiler: Compiler):
    made = succeeds(compiler, IMPORTS + KERNEL + BUFFER + LAUNCH, arguments={"x_ptr": "*bf16"})
    assert made.kernel.origin == "guessed"
    assert {a.name: (a.type, a.guessed) for a in made.kernel.arguments} == {
        "x_ptr": ("*bf16", False),
        "n": ("i32", True),
        "BLOCK": ("constexpr", True),
    }
    assert "Not every argument was given" in note(made)


def test_all_that_is_given_is_no_guess(compiler: Compiler):
    made = succeeds(compiler, IMPORTS + KERNEL, arguments={"x_ptr": "*fp32", "n": "i32"}, constexprs=CONSTEXPRS)
    assert made.kernel.origin == "given"
    assert not made.diagnostics
    assert not any(item.guessed for item in made.kernel.arguments)


def test_constexprs_alone_leave_the_types_to_the_guess(compiler: Compiler):
    made = succeeds(compiler, IMPORTS + KERNEL, constexprs={"BLOCK": 64})
    assert [(a.value, a.guessed) for a in made.kernel.arguments] == [(None, True), (None, True), (64, False)]


def test_a_captured_launch_comes_before_any_guess(compiler: Compiler):
    made = compiled(compiler, IMPORTS + TWO + BUFFER + LAUNCH)
    assert made.manifest.kernel.origin == "captured"
    assert [launch.kernel for launch in made.launches] == ["kernel"]
    assert succeeds(compiler, IMPORTS + TWO + BUFFER + LAUNCH, kernel="second").kernel.origin == "guessed"


def test_every_kernel_of_a_source_that_launches_none_is_a_choice(compiler: Compiler):
    made = compiled(compiler, IMPORTS + KERNELS["matmul_with_activation_by_name"] + TWO.replace("kernel", "first"))
    assert [launch.kernel for launch in made.launches] == ["kernel", "first", "second"]
    assert manifest(compiler, IMPORTS + TWO, launch=1).kernel.name == "second"


def test_a_guess_that_does_not_compile_shows_the_error_and_what_to_change(compiler: Compiler):
    body = "    tl.store(x_ptr, tl.arange(0, UNIT + 1))\n"
    source = f"{IMPORTS}@triton.jit\ndef kernel(x_ptr, n, UNIT: tl.constexpr):\n{body}"
    message, errors = fails(compiler, source)
    assert "power of 2" in message
    assert errors[0].line == line_of(source, "tl.store")
    hint = manifest(compiler, source).failure.hint
    assert "guessed" in hint
    assert "UNIT" in hint


def test_a_nested_kernel_that_nothing_makes_says_where_it_is(compiler: Compiler):
    inner = "".join(f"    {line}\n" for line in KERNEL.replace("kernel", "inner").splitlines())
    source = f"{IMPORTS}{KERNEL}def make(size):\n{inner}    return inner\n"
    message, _ = fails(compiler, source, kernel="inner")
    assert "inside make()" in message


def test_a_tuple_can_be_given_as_it_was_captured(compiler: Compiler):
    captured = succeeds(compiler, TUPLES)
    given = succeeds(compiler, TUPLES, arguments={"pointers": "(*fp32:16, *fp16)", "pair": "(i32:16, (i32, 7))"})
    assert given.kernel.arguments == captured.kernel.arguments
    assert given.stages == captured.stages
