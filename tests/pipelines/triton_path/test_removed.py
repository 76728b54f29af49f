"""Features that Triton has removed or never had are told with what to use instead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.removed import hint_of
from pipelines.triton_path.spec import CompileSpec

HEAD = "import triton\nimport triton.language as tl\n"
KERNEL = "@triton.jit\ndef kernel(x, n, BLOCK: tl.constexpr):\n"
STORE = "    tl.store(x, 1.0)\n"


@pytest.mark.parametrize(
    ("before", "body", "instead"),
    [
        ("", "    p = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))\n", "make_tensor_descriptor"),
        ("", "    p = tl.advance(x, (1,))\n", "make_tensor_descriptor"),
        ("", "    a = tl.load(x + tl.arange(0, BLOCK), boundary_check=(0,))\n", "make_tensor_descriptor"),
        ("", "    a = tl._experimental_descriptor_load(x, [0], [BLOCK], tl.float16)\n", "make_tensor_descriptor"),
        ("", "    a = tl.libdevice.exp(tl.load(x))\n", "from triton.language.extra import libdevice"),
        ("", "    a = tl.math.tanh(tl.load(x))\n", "from triton.language.extra import libdevice"),
        ("", "    a = tl.load(x).to(tl.float8e4)\n", "tl.float8e4nv"),
        ("", "    a = tl.zeros((16, 16), tl.float16)\n    b = tl.dot(a, a, trans_a=True)\n", "tl.trans(a)"),
        ("", "    for i in tl.range(0, n, loop_unroll=2):\n        tl.store(x, 1.0)\n", "loop_unroll_factor"),
        ("", "    for i in tl.static_range(4, loop_unroll_factor=2):\n        tl.store(x, 1.0)\n", "unrolled whole"),
        ("", "    with tl.async_task([0]):\n        tl.store(x, 1.0)\n", "warp_specialize=True"),
        ("", "    a = tl.arange(0, n)\n", "BLOCK: tl.constexpr"),
        ("", "    a = tl.arange(0, 48)\n", "triton.next_power_of_2"),
        ("", "    p = tl.load(x).to(tl.pointer_type(tl.float32))\n", "int64 tensor of data_ptr()s"),
        ("@triton.autotune([triton.Config({}, num_consumer_groups=2)], key=[])\n", STORE, "warp_specialize=True"),
        ("import triton.ops\n", STORE, "Paste the kernel itself"),
        (
            "from triton.tools.tensor_descriptor import TensorDescriptor\nTensorDescriptor(None, [4], [1])\n",
            STORE,
            "block_shape",
        ),
        ("from triton.tools.experimental_descriptor import create_2d_tma_descriptor\n", STORE, "TensorDescriptor("),
        ("from triton.runtime.jit import get_cuda_stream\n", STORE, "Leave the import out"),
        ("import liger_kernel\n", STORE, "a folder or a zip"),
    ],
)
def test_the_failure_says_what_to_use(compiler: Compiler, before: str, body: str, instead: str) -> None:
    spec = CompileSpec(
        source=HEAD + before + KERNEL + body,
        kernel="kernel",
        arguments={"x": "*fp32:16", "n": "i32"},
        constexprs={"BLOCK": 64},
        target="sm_90",
    )
    failure = compiler.compile(spec, lambda _: None).manifest.failure
    assert failure is not None
    assert instead in (failure.hint or ""), failure.message


def test_an_ordinary_error_has_no_such_hint(compiler: Compiler) -> None:
    spec = CompileSpec(
        source=HEAD + KERNEL + "    tl.store(x, missing)\n",
        kernel="kernel",
        arguments={"x": "*fp32:16", "n": "i32"},
        constexprs={"BLOCK": 64},
        target="sm_90",
    )
    failure = compiler.compile(spec, lambda _: None).manifest.failure
    assert failure is not None
    assert failure.hint is None


@given(st.text(max_size=3000))
def test_any_message_is_read(message: str) -> None:
    assert hint_of(message) is None or isinstance(hint_of(message), str)
