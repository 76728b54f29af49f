from hypothesis import given
from hypothesis import strategies as st

from pipelines.kernels.discover import discover

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


@given(st.text(max_size=200))
def test_any_text_is_read(text: str):
    discover(text)
