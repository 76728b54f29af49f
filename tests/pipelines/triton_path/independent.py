"""Compiles kernels with plain Triton and MLIR's own dump, sharing no code with ``pipelines``.

A trace is held against what this makes.

Run as a program: reads jobs as JSON lines on stdin (file, kernel, arguments, options, target, out), forks a child for
each, and writes to ``out``: dump.mlir, ttir, ttgir, llvm-dialect, llir, and ptx, or amdgcn with hsaco. Prints ``done``
after each.
"""

import ctypes
import json
import os
import sys
import traceback
import types
from pathlib import Path

import triton
from triton._C.libtriton import llvm
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime.autotuner import Autotuner

ROOT = str(Path(triton.__file__).parent)


def value_of(constant):
    if isinstance(constant, str) and constant.startswith("tl."):
        return getattr(triton.language, constant[3:])
    return tuple(constant) if isinstance(constant, list) else constant


def promises(argument):
    known = [["tt.divisibility", argument["divisibility"]], ["tt.pointer_range", argument["pointer_range"]]]
    return [item for item in known if item[1]]


def compile_job(job):
    out = Path(job["out"])
    os.chdir(out)
    os.environ.update(
        MLIR_ENABLE_DUMP="1",
        MLIR_DUMP_PATH="dump.mlir",
        TRITON_ALWAYS_COMPILE="1",
        TRITON_CACHE_DIR=str(out / "cache"),
        TRITON_DEFAULT_FP_FUSION="1",
    )
    Path("kernel.py").write_text(Path(job["file"]).read_text())
    module = sys.modules["kernel"] = types.ModuleType("kernel")
    exec(compile(Path("kernel.py").read_text(), "kernel.py", "exec"), module.__dict__)
    function = getattr(module, job["kernel"])
    function = function.fn if isinstance(function, Autotuner) else function
    to_module = llvm.to_module

    def kept(module, context):
        Path("llvm-dialect").write_text(str(module))
        return to_module(module, context)

    llvm.to_module = kept
    arguments = list(enumerate(job["arguments"]))
    kind = GluonASTSource if function.is_gluon() else ASTSource
    source = kind(
        function,
        {a["name"]: a["type"] for _, a in arguments},
        {(i,): value_of(a["value"]) for i, a in arguments if a["type"] == "constexpr"},
        {(i,): promises(a) for i, a in arguments if promises(a)},
    )
    chosen = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu")
    options = {k: job["options"][k] for k in chosen if k in job["options"]}
    arch = job["target"]
    hip = arch.startswith("gfx")
    wave = 64 if arch.startswith("gfx9") else 32
    target = GPUTarget("hip", arch, wave) if hip else GPUTarget("cuda", int(arch[3:]), 32)
    kernel = triton.compile(source, target=target, options=options)
    for name in ("ttir", "ttgir", "llir", "amdgcn" if hip else "ptx"):
        if name in kernel.asm:  # Gluon has no ttir
            Path(name).write_text(kernel.asm[name])
    if hip:
        Path("hsaco").write_bytes(kernel.asm["hsaco"])


def main():
    for line in sys.stdin:
        job = json.loads(line)
        if os.fork() == 0:
            try:
                compile_job(job)
            except BaseException:
                Path(job["out"], "error").write_text(traceback.format_exc())
            ctypes.CDLL(None).exit(0)
        os.wait()
        print("done", flush=True)


if __name__ == "__main__":
    main()
