"""How faults of the source are told: in which words, and at which line and column."""

from __future__ import annotations

import json

import pytest

from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.options import OptionError
from tests.pipelines.triton_path.sources import (
    CAPTURED,
    GIVEN,
    IMPORTS,
    KERNEL,
    LAMBDA,
    fails,
    line_of,
)


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
