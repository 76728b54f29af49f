"""What discovery tells of kernels beside their names: scopes, holders, decorators, and a guess for each argument."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.kernels import usage
from pipelines.kernels.discover import Reading, discover
from pipelines.kernels.found import FoundKernel, Guess
from pipelines.kernels.guess import MAX_ALTERNATIVES
from tests.conftest import EXAMPLES
from tests.growth import LINEAR, growth
from tests.pipelines.triton_path.guessable import IMPORTS, KERNELS

SOURCES = [*(IMPORTS + text for text in KERNELS.values()), *(path.read_text() for path in EXAMPLES.glob("*.py"))]


def only(source: str) -> FoundKernel:
    (kernel,) = discover(IMPORTS + source).kernels
    return kernel


def guesses(source: str, name: str = "k") -> dict[str, Guess]:
    kernel = next(item for item in discover(IMPORTS + source).kernels if item.name == name)
    return {argument.name: argument.guess for argument in kernel.arguments if argument.guess}


def values(source: str) -> dict[str, str]:
    return {name: guess.value for name, guess in guesses(source).items()}


@pytest.mark.parametrize(
    ("line", "held", "autotuned"),
    [
        ("k = triton.jit(f)", ("k",), False),
        ("k = triton.jit(do_not_specialize=['n'])(f)", ("k",), False),
        ("k = triton.autotune(configs=[triton.Config({'B': 4})], key=['n'])(triton.jit(f))", ("k",), True),
        ("j = triton.jit(f)\nk = triton.autotune(configs=[], key=[])(j)", ("j", "k"), True),
        ("k = triton.heuristics({'B': lambda a: 4})(triton.jit(f))", ("k",), False),
        ("k = functools.partial(triton.jit(f))", ("k",), False),
    ],
)
def test_kernels_made_by_assignment(line: str, held: tuple[str, ...], autotuned: bool):
    kernel = only(
        f"import functools\n\ndef f(x, n, B: tl.constexpr):\n    tl.store(x, n)\n\n{line}\nk[(1,)](1, 2, 3)\n"
    )
    assert (kernel.name, set(kernel.held), kernel.autotuned) == ("f", set(held), autotuned)
    assert kernel.launched


@pytest.mark.parametrize("line", ["k = mine.jit(f)", "k = f", "k = triton.cdiv(f)", "k = functools.partial(f, 1)"])
def test_other_calls_make_no_kernels(line: str):
    assert discover(f"{IMPORTS}import functools\n\ndef f(x): pass\n{line}\n").kernels == ()


def test_nested_kernels_and_methods_say_where_they_are():
    source = (
        "def make(n):\n    def deeper():\n        @triton.jit\n        def inner(x): pass\n        return inner\n"
        "class Operation:\n    @staticmethod\n    @triton.jit\n    def method(x): pass\n"
    )
    found = discover(IMPORTS + source).kernels
    assert [(k.name, k.within, k.nested) for k in found] == [
        ("inner", "make().deeper()", True),
        ("method", "Operation", False),
    ]


def test_decorators_are_read_as_far_as_they_are_literal():
    kernel = only(
        "CONFIGS = [triton.Config({'B': 64, 'G': N}, num_warps=4, num_stages=2), "
        "triton.Config({'B': 128, 'G': 1}, 8)]\n"
        "@triton.autotune(CONFIGS, key=['m', 'n'])\n@triton.heuristics({'EVEN': lambda a: True})\n"
        "@triton.heuristics(values={'ODD': lambda a: False})\n@triton.jit\n"
        "def k(x, m, n, B: tl.constexpr, G: tl.constexpr, EVEN: tl.constexpr, ODD: tl.constexpr): pass\n"
    )
    assert kernel.tuning is not None
    assert [(c.values, c.options) for c in kernel.tuning.configs] == [
        ({"B": "64", "G": "N"}, {"num_warps": "4", "num_stages": "2"}),
        ({"B": "128", "G": "1"}, {"num_warps": "8"}),
    ]
    assert (kernel.tuning.key, kernel.tuning.computed, kernel.heuristics) == (("m", "n"), False, ("EVEN", "ODD"))
    origins = {a.name: (a.guess.origin, a.guess.value) for a in kernel.arguments if a.guess and a.constexpr}
    assert origins["B"] == ("config", "64")
    assert origins["EVEN"][0] == "heuristic"


@pytest.mark.parametrize(
    "configs", ["make()", "[triton.Config({'B': b}) for b in SIZES]", "[*BASE, triton.Config({'B': 4})]", "[config]"]
)
def test_configs_that_are_computed_are_said_to_be(configs: str):
    tuning = only(f"@triton.autotune(configs={configs}, key=[])\n@triton.jit\ndef k(x, B: tl.constexpr): pass\n").tuning
    assert tuning is not None
    assert tuning.computed


def test_kernels_of_other_files_are_only_names():
    found = discover(IMPORTS + "from .ops import norm as n\nfrom triton import cdiv\nn[(1,)](1)\ncdiv[1](2)\n")
    assert [(item.name, item.module) for item in found.imported] == [("n", ".ops")]
    assert found.kernels == ()


def test_a_function_that_returns_a_value_is_a_helper():
    found = discover(
        IMPORTS + "@triton.jit\ndef f(x):\n    if x:\n        return x\n\n@triton.jit\ndef g(x):\n    return\n"
    )
    assert [kernel.helper for kernel in found.kernels] == [True, False]


@pytest.mark.parametrize(
    ("body", "name", "value"),
    [
        ("tl.store(a, tl.exp(tl.load(b)))", "b", "*fp32:16"),
        ("tl.store(a, tl.exp(tl.load(b).to(tl.float32)))", "b", "*fp16:16"),
        ("tl.store(a + tl.load(b), 1.0)", "b", "*i32:16"),
        ("tl.atomic_cas(a, 0, 1)", "a", "*i32:16"),
        ("tl.atomic_max(a, tl.load(b))", "a", "*fp32:16"),
        ("tl.store(a, tl.load(b).to(tl.int32, bitcast=True))", "b", "*fp32:16"),
        ("for i in range(tl.load(b)):\n        tl.store(a, i)", "b", "*i32:16"),
        ("p = a\n    p += 4\n    tl.store(p, 1)", "a", "*fp16:16"),
        ("tl.store(a, b * tl.load(c))", "b", "fp32"),
        ("tl.store(a + b * 4, 0)", "b", "i32"),
        ("tl.store(a + tl.arange(0, 4), 0, mask=tl.arange(0, 4) < b)", "b", "i32"),
        ("tl.store(a.load([0, 1]), 0)", "a", "tensordesc<fp16[64, 64]>"),
        ("tl.store(a[0], b[1])", "b", "(i32, i32)"),
        ("tl.store(a, b, mask=(lambda: 1)())", "a", "*fp16:16"),
        ("acc = tl.load(b)\n    for i in range(4):\n        acc += tl.load(c).to(tl.float32)", "b", "*fp32:16"),
        ("tl.store(tl.load(b).to(tl.pointer_type(tl.float16)), 1)", "b", "*i64:16"),
    ],
)
def test_how_an_argument_is_used_says_what_it_is(body: str, name: str, value: str):
    assert values(f"@triton.jit\ndef k(a, b, c):\n    {body}\n")[name] == value


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("if C == 'relu' or C == 'gelu': pass", "'relu'"),
        ("if C in ('a', 'b'): pass", "'a'"),
        ("if C: pass", "False"),
        ("if not C and a: pass", "False"),
        ("if C == 3: pass", "3"),
        ("tl.store(a, tl.load(a).to(C))", "tl.float16"),
        ("x = tl.zeros((4,), dtype=C)", "tl.float32"),
        ("tl.store(a, C(1))", "twice"),
        ("tl.store(a + tl.arange(0, C), 0)", "1024"),
        ("x = tl.zeros((C, 16), tl.float32)", "64"),
        ("tl.store(a[:, None, None] + tl.arange(0, C), 0)", "16"),
    ],
)
def test_how_a_constexpr_is_used_says_what_it_is(body: str, value: str):
    helper = "@triton.jit\ndef twice(x):\n    return x * 2\n\n"
    assert values(f"{helper}@triton.jit\ndef k(a, C: tl.constexpr):\n    {body}\n")["C"] == value


def test_alternatives_are_told():
    told = guesses(
        "@triton.jit\ndef k(x, MODE: tl.constexpr):\n    if x is not None: tl.store(x, MODE == 'a' or MODE == 'b')\n"
    )
    assert {"None", "*bf16:16", "*fp16"} <= set(told["x"].alternatives)
    assert "'b'" in told["MODE"].alternatives
    assert all(guess.value not in guess.alternatives for guess in told.values())


def test_arguments_are_followed_through_helpers_of_other_files():
    files = {
        "pkg/main.py": "",
        "pkg/parts/__init__.py": "",
        "pkg/parts/io.py": "def read(p, at):\n    return tl.load(p + at)\n",
    }
    source = "from .parts.io import read\n@triton.jit\ndef k(src, n):\n    read(src, n)\n"
    (kernel,) = discover(IMPORTS + source, "pkg/main.py", Reading(files.get)).kernels
    assert kernel.arguments[0].guess is not None
    assert kernel.arguments[0].guess.why == "read() has it loaded from"


@pytest.mark.parametrize("source", SOURCES)
def test_every_argument_that_can_be_passed_has_a_guess(source: str):
    for kernel in discover(source).kernels:
        assert all(argument.guess for argument in kernel.arguments if not argument.name.startswith("*"))


@given(st.sampled_from(SOURCES), st.data())
def test_a_mutated_source_is_read_or_its_fault_told(source: str, data: st.DataObject):
    lines = source.split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["drop", "double", "swap", "cut", "other"]))
        other = data.draw(st.integers(0, len(lines) - 1))
        if change == "drop":
            lines[at] = ""
        elif change == "double":
            lines.insert(at, lines[at])
        elif change == "swap":
            lines[at], lines[other] = lines[other], lines[at]
        elif change == "cut":
            lines[at] = lines[at][: data.draw(st.integers(0, 80))]
        else:
            lines[at] = lines[at].replace("(", data.draw(st.sampled_from(["((", "[", "(*", "(**"])), 1)
    found = discover("\n".join(lines))
    for kernel in found.kernels:
        assert all(argument.guess for argument in kernel.arguments if not argument.name.startswith("*"))


@given(st.sampled_from(SOURCES), st.data())
def test_expressions_that_change_places_are_no_fault(source: str, data: st.DataObject):
    """Any syntax may stand anywhere: a tree whose expressions are exchanged is still a source."""
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call | ast.BinOp | ast.Compare)]
    if len(calls) > 1:
        one, two = data.draw(st.sampled_from(calls)), data.draw(st.sampled_from(calls))
        if isinstance(one, ast.Call):
            one.args = [*one.args, ast.parse(ast.unparse(two), mode="eval").body]
        elif isinstance(one, ast.BinOp):
            one.left = ast.parse(ast.unparse(two), mode="eval").body
    assert discover(ast.unparse(tree)).error is None


BODIES = {
    "loads": lambda size: "    x = tl.load(a + b)\n" * (size // 23),
    "sums": lambda size: "    x = " + "+".join(["a"] * (size // 20)) + "\n",
    "variables": lambda size: "".join(f"    x{n} = x{n + 1} + a\n" for n in range(size // 18)),
    "comparisons": lambda size: "    if C == 'a': pass\n" * (size // 22),
    "calls": lambda size: "    k(a, b, C)\n" * (size // 15),
}


@pytest.mark.parametrize("kind", BODIES)
def test_a_hostile_kernel_costs_its_length(kind: str):
    head = f"{IMPORTS}@triton.jit\ndef k(a, b, C: tl.constexpr):\n"
    assert growth(discover, lambda size: head + BODIES[kind](size), 6_000) < LINEAR


NESTED = {
    "casts": lambda depth: "    x = a" + ".to(tl.float32)" * depth + "\n",
    "fills": lambda depth: "    x = " + "tl.full([C], " * depth + "a" + ", tl.float16)" * depth + "\n",
    "operations": lambda depth: "    x = " + "(a + " * depth + "b" + ")" * depth + "\n",
    "tuples": lambda depth: (
        "    " + "(x, " * depth + "x" + ")" * depth + " = " + "(a, " * depth + "b" + ")" * depth + "\n"
    ),
}


@pytest.mark.parametrize("kind", NESTED)
def test_nesting_costs_its_depth(kind: str):
    head = f"{IMPORTS}@triton.jit\ndef k(a, b, C: tl.constexpr):\n"
    assert growth(discover, lambda depth: head + NESTED[kind](depth) * 20, 40) < LINEAR


def test_files_that_import_each_other_are_read_once():
    """Each of them opens all others: without keeping them, the reading would multiply with every file."""
    numbers = range(30)
    files = {
        f"p/f{n}.py": IMPORTS
        + "".join(f"from p.f{other} import g{other}\n" for other in numbers if other != n)
        + f"@triton.jit\ndef g{n}(x):\n"
        + "".join(f"    g{other}(x)\n" for other in numbers if other != n)
        for n in numbers
    }
    opened: list[str] = []
    reading = Reading(lambda path: (opened.append(path), files.get(path))[1])
    for path, text in files.items():
        assert discover(text, path, reading).error is None
    assert len(opened) == len(set(opened))


def test_the_work_of_reading_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(usage, "MAX_EXPRESSIONS", 100)
    reading = Reading()
    source = f"{IMPORTS}@triton.jit\ndef k(a, b):\n" + "    x = a + b\n" * 1000
    assert discover(source, "kernel.py", reading).error is None
    assert reading.reader.left == 0


@pytest.mark.parametrize("literal", ["{n}", "'s{n}'"])
def test_alternatives_are_few(literal: str):
    tests = "".join(f"    if C == {literal.format(n=n)}: pass\n" for n in range(1000))
    helpers = "".join(f"@triton.jit\ndef h{n}(F: tl.constexpr):\n    F(1)\n" for n in range(400))
    found = discover(f"{IMPORTS}@triton.jit\ndef k(a, C: tl.constexpr):\n{tests}{helpers}")
    guesses = [argument.guess for kernel in found.kernels for argument in kernel.arguments]
    assert max(len(guess.alternatives) for guess in guesses if guess) == MAX_ALTERNATIVES


def test_helpers_that_call_each_other_end():
    source = "".join(f"@triton.jit\ndef f{n}(x):\n    f{(n + 1) % 40}(x)\n    f{(n * 7) % 40}(x)\n" for n in range(40))
    assert len(discover(IMPORTS + source).kernels) == 40
