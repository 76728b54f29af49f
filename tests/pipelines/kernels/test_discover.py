from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.kernels.discover import MAX_KERNELS, discover
from tests.growth import LINEAR, growth

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def helper(x):
    return x + 1

@triton.jit
def combine(a, b):
    return a + b

@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit(do_not_specialize=["n"])
def kernel(x_ptr, n, eps=1e-5, *, BLOCK: tl.constexpr = 64):
    x = helper(tl.load(x_ptr))
    tl.store(x_ptr, tl.reduce(x, 0, combine))

def plain(): ...

if __name__ == "__main__":
    kernel[(1,)](None, 3)
"""


def test_kernels_with_their_arguments():
    found = discover(SOURCE)
    assert [(k.name, k.helper, k.launched, k.autotuned) for k in found.kernels] == [
        ("helper", True, False, False),
        ("combine", True, False, False),
        ("kernel", False, True, True),
    ]
    kernel = found.kernels[2]
    assert [(a.name, a.constexpr, a.default) for a in kernel.arguments] == [
        ("x_ptr", False, None),
        ("n", False, None),
        ("eps", False, "1e-05"),
        ("BLOCK", True, "64"),
    ]
    assert found.launches


def test_a_fault_points_at_its_line():
    found = discover("import triton\ndef f(:\n")
    assert found.error is not None
    assert found.error.line == 2
    assert found.kernels == ()


def test_deep_nesting_is_an_answer():
    assert discover("(" * 5000 + ")" * 5000).error is not None
    assert discover("x = " + "-" * 50_000 + "1").error is not None


@pytest.mark.parametrize(
    ("lines", "decorator", "gluon"),
    [
        ("import triton", "triton.jit", False),
        ("import triton as tr", "tr.jit", False),
        ("import triton as tr", "tr.jit(noinline=True)", False),
        ("import triton.language as tl, triton", "triton.jit", False),
        ("from triton import jit", "jit", False),
        ("from triton import jit as j", "j", False),
        ("from triton import jit as j", "j(do_not_specialize=['n'])", False),
        ("from triton.runtime.jit import jit as j", "j", False),
        ("import triton.runtime as rt", "rt.jit", False),
        ("if True:\n    import triton as tr", "tr.jit", False),
        ("from triton.experimental import gluon", "gluon.jit", True),
        ("from triton.experimental import gluon as g", "g.jit", True),
        ("from triton.experimental.gluon import jit as j", "j", True),
        ("import triton.experimental.gluon as g", "g.jit", True),
        ("import triton.experimental.gluon", "triton.experimental.gluon.jit", True),
        ("", "jit", False),
        ("", "gluon.jit", True),
    ],
)
def test_a_decorator_is_known_by_what_it_was_imported_as(lines: str, decorator: str, gluon: bool):
    (kernel,) = discover(f"{lines}\n@{decorator}\ndef k(x): pass\n").kernels
    assert (kernel.name, kernel.gluon) == ("k", gluon)


@pytest.mark.parametrize(
    ("lines", "decorator"),
    [
        ("from numba import jit", "jit"),
        ("import numba as triton", "triton.jit"),
        ("from mine import gluon", "gluon.jit"),
        ("from .triton import jit", "jit"),
        ("from . import jit", "jit"),
        ("import triton", "triton.constexpr_function"),
        ("import triton", "tr.jit"),
        ("import triton", "(lambda f: f)"),
        ("import triton", "triton[0].jit"),
    ],
)
def test_other_decorators_make_no_kernels(lines: str, decorator: str):
    found = discover(f"{lines}\n@{decorator}\ndef k(x): pass\n")
    assert (found.kernels, found.error) == ((), None)


def test_an_autotuner_is_known_by_what_it_was_imported_as():
    source = "from triton import autotune as tune, jit\n@tune(configs=[], key=[])\n@jit\ndef k(x): pass\n"
    assert discover(source).kernels[0].autotuned


def test_a_byte_order_mark_is_no_fault():
    """Python compiles such a file, and its lines and columns count without the mark."""
    assert discover("\ufeff" + SOURCE) == discover(SOURCE)
    fault = discover("\ufeffx = = 1\n").error
    assert fault == discover("x = = 1\n").error


KINDS = {
    "attributes": lambda size: "\n".join(["a.b.c.d.e"] * (size // 10)),
    "kernels": lambda size: "@jit\ndef f(): pass\n" * (size // 19),
    "imports": lambda size: "\n".join(f"import a{n} as b{n}" for n in range(size // 20)),
    "launches": lambda size: "@jit\ndef f(): pass\n" + "f[1](2)\n" * (size // 8),
    "arguments": lambda size: (
        "@jit\ndef f(" + ",".join(f"a{n}: tl.constexpr = 1" for n in range(size // 24)) + "): 0\n"
    ),
    "decorators": lambda size: "@a.b\n" * (size // 5) + "@jit\ndef f(): pass\n",
    "uses": lambda size: "@jit\ndef f():\n" + "    f\n" * (size // 6),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_source_costs_its_length(kind: str):
    assert growth(discover, KINDS[kind], 10_000) < LINEAR


def test_the_kernels_that_are_told_are_bounded():
    assert len(discover("@jit\ndef f(): pass\n" * (MAX_KERNELS + 9)).kernels) == MAX_KERNELS


@pytest.mark.parametrize(
    "source",
    ["a" + ".b" * 20_000, "f" + "()" * 20_000, "@" + "a." * 20_000 + "b\ndef f(): pass\n", "lambda:" * 9_000 + "1"],
)
def test_deep_sources_are_told_in_words(source: str):
    fault = discover(source).error
    assert fault is not None
    assert "recursion" not in fault.message


@given(st.text(max_size=200))
def test_any_text_is_read(text: str):
    discover(text)


INDUCTOR = (Path(__file__).parents[2] / "golden" / "inductor_output.py").read_text()


def test_the_texts_of_an_inductor_output_are_listed_at_their_lines():
    found = discover(INDUCTOR)
    assert found.error is None
    assert found.launches
    assert [(k.name, k.launched, k.declared, k.helper) for k in found.kernels] == [
        ("triton_poi_fused_add_gelu_0", True, True, False),
        ("triton_per_fused_native_layer_norm_1", True, True, False),
    ]
    lines = INDUCTOR.splitlines()
    assert [lines[k.line - 1].partition("(")[0] for k in found.kernels] == [f"def {k.name}" for k in found.kernels]
    assert [a.name for a in found.kernels[0].arguments] == ["in_out_ptr0", "in_ptr0", "xnumel", "XBLOCK"]


def test_a_kernel_under_inductors_own_decorator_is_declared():
    decorated = SOURCE.replace("@triton.jit\ndef helper", "@triton_heuristics.pointwise()\n@triton.jit\ndef helper")
    found = {kernel.name: kernel for kernel in discover(decorated).kernels}
    assert (found["helper"].declared, found["helper"].launched, found["helper"].helper) == (True, True, False)
    assert not found["kernel"].declared


def test_a_fault_inside_a_text_is_told_at_its_line():
    broken = INDUCTOR.replace("    xnumel = 1048576", "    xnumel = = 1048576")
    error = discover(broken).error
    assert error is not None
    assert error.line is not None
    assert "= =" in broken.splitlines()[error.line - 1]
