"""Sources that the tests of this folder compile, and the shortest ways to compile them."""

from __future__ import annotations

import pytest

from pipelines.trace import Diagnostic, Manifest
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.spec import Compiled, CompileSpec

IMPORTS = "import triton\nimport triton.language as tl\n"

# Five lines; the kernel's body begins in the fifth of a source that begins with IMPORTS.
KERNEL = """@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(x_ptr + at, x * 2, mask=at < n)
"""

# What launch code passes in place of a tensor.
BUFFER = """
class Kind:
    itemsize = 2
    is_floating_point = True
    def __init__(self, name): self.name = name
    def __str__(self): return self.name

class Buffer:
    def __init__(self, dtype="fp32", address=4096, shape=(64, 64)):
        self.dtype, self.address, self.shape = Kind(dtype), address, shape
    def data_ptr(self): return self.address
    def stride(self): return (self.shape[1], 1)

"""

LAUNCH = "kernel[(4,)](Buffer(), 1000, BLOCK=128)\n"
GUARDED = f'if __name__ == "__main__":\n    {LAUNCH}'
ARGUMENTS = {"x_ptr": "*fp32:16", "n": "i32"}
CONSTEXPRS = {"BLOCK": 128}
GIVEN = {"arguments": ARGUMENTS, "constexprs": CONSTEXPRS}
BOTH = pytest.mark.parametrize("given", [{}, GIVEN], ids=["captured", "given"])

CAPTURED = IMPORTS + KERNEL + BUFFER + GUARDED

# What a source begins with that plants something in the compiler.
PLANTS = (
    "import ctypes, os, sys\nfrom triton._C.libtriton import ir, llvm\n"
    "from triton.backends.nvidia.compiler import CUDABackend\n"
)

TUPLES = (
    f"{IMPORTS}{BUFFER}@triton.jit\ndef kernel(pointers, pair):\n"
    "    for i in tl.static_range(len(pointers)):\n        tl.store(pointers[i], pair[0] + pair[1][0])\n\n"
    "kernel[(1,)]((Buffer(), Buffer('fp16', 8)), (16, (3, tl.constexpr(7))))\n"
)
DESCRIPTOR = (
    f"from triton.tools.tensor_descriptor import TensorDescriptor\n{IMPORTS}{BUFFER}@triton.jit\n"
    "def kernel(tile, out_ptr, BLOCK: tl.constexpr):\n    at = tl.arange(0, BLOCK)\n"
    "    tl.store(out_ptr + at[:, None] * BLOCK + at[None, :], tile.load([0, 0]))\n\n"
    "kernel[(1,)](TensorDescriptor(Buffer('fp16'), [32, 48], [64, 1], [16, 16]), Buffer('fp16'), BLOCK=16)\n"
)
LAMBDA = f"{IMPORTS}{KERNEL.replace('x * 2', 'x * scale')}{BUFFER}scale = lambda: 2\n{LAUNCH}"


def compiled(compiler: Compiler, source: str, **more: object) -> Compiled:
    """Compile for sm_80, which takes the least time."""
    return compiler.compile(CompileSpec.model_validate({"source": source, "target": "sm_80", **more}), lambda _: None)


def manifest(compiler: Compiler, source: str, **more: object) -> Manifest:
    """Compile, and return what is known of it."""
    return compiled(compiler, source, **more).manifest


def succeeds(compiler: Compiler, source: str, **more: object) -> Manifest:
    """Compile what must succeed."""
    made = manifest(compiler, source, **more)
    assert made.status == "ok", made.failure
    return made


def fails(compiler: Compiler, source: str, **more: object) -> tuple[str, list[Diagnostic]]:
    """Compile what must fail with an error of the source's; return its message and its errors' places."""
    made = manifest(compiler, source, **more)
    assert made.failure is not None
    assert made.failure.kind == "error", made.failure
    return made.failure.message, [item for item in made.diagnostics if item.severity == "error"]


def line_of(source: str, text: str) -> int:
    """Return the line, from 1, of the only place where a source has a text."""
    assert source.count(text) == 1
    return source[: source.index(text)].count("\n") + 1
