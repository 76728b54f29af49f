"""The yardstick: a bare, warm ``triton.compile`` in a forked child, without Loupe; runs as its own process.

Reads a request a line from standard input and answers each with a line of JSON. The launch is captured before the
clock starts: the yardstick pays for nothing but the compilation.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from pipelines.kernels.capture import Capture, Launch
from pipelines.triton_path.compile import NVDISASM_FLAGS
from pipelines.triton_path.targets import chip
from pipelines.triton_path.toolchain import binaries

DUMP = "dump.mlir"


def capture(path: Path, arch: str) -> Launch:
    """Return the first launch that an example's own code makes."""
    collected = Capture(target(arch), chip(arch).properties())
    collected.install()
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    collected.remove()
    return collected.launches[0]


def target(arch: str) -> GPUTarget:
    """Return Triton's name of a chip."""
    return GPUTarget("cuda", int(arch.removeprefix("sm_")), 32)


def compile_launch(launch: Launch, arch: str) -> Any:
    """Compile as Loupe does, but with nothing around it."""
    source = ASTSource(launch.function, launch.signature, launch.constexprs, launch.attributes)
    return triton.compile(source, target=target(arch), options=dict(launch.options.__dict__))


def timed(request: dict[str, Any]) -> dict[str, Any]:
    """Time one compilation and one nvdisasm run over its cubin, in seconds."""
    launch = capture(Path(request["path"]), request["arch"])
    start = time.perf_counter()
    kernel = compile_launch(launch, request["arch"])
    compiled = time.perf_counter()
    disassemble(kernel.asm["cubin"])
    return {"compile": compiled - start, "nvdisasm": time.perf_counter() - compiled}


def disassemble(cubin: bytes) -> bytes:
    """Return SASS with line information and encodings, as Loupe stores it."""
    Path("k.cubin").write_bytes(cubin)
    nvdisasm = next(path for path in binaries() if path.name == "nvdisasm")
    return subprocess.run([nvdisasm, *NVDISASM_FLAGS, "k.cubin"], capture_output=True, check=True).stdout


def artifacts(request: dict[str, Any]) -> dict[str, Any]:
    """Return the bytes of everything but the dump that a trace also holds."""
    path = Path(request["path"])
    asm = compile_launch(capture(path, request["arch"]), request["arch"]).asm
    texts = [asm["llir"].encode(), asm["ptx"].encode(), asm["cubin"], disassemble(asm["cubin"])]
    return {"artifacts": path.stat().st_size + sum(map(len, texts))}


def in_child(work: str, request: dict[str, Any], directory: str) -> dict[str, Any]:
    """Run a function of this module in a forked child with an empty cache; a child ends through libc to flush dumps."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.chdir(directory)
            os.environ["TRITON_CACHE_DIR"] = str(Path(directory, "cache"))
            if work == "artifacts":
                os.environ.update(MLIR_ENABLE_DUMP="1", MLIR_DUMP_PATH=DUMP)
            Path("answer.json").write_text(json.dumps(globals()[work](request)))
            code = 0
        except BaseException as error:
            print(f"{request}: {error!r}", file=sys.stderr)
        finally:
            ctypes.CDLL(None).exit(code)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"the bare compilation of {request['path']} ended with status {status}")
    answer: dict[str, Any] = json.loads(Path(directory, "answer.json").read_text())
    dump = Path(directory, DUMP)
    return {**answer, "dump": dump.stat().st_size if dump.exists() else 0}


def main() -> None:
    """Warm up with a compilation for sm_80, as the zygote does, then serve requests until standard input ends."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ["TRITON_CACHE_DIR"] = directory
        compile_launch(capture(Path(sys.argv[1]), "sm_80"), "sm_80")
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryDirectory() as directory:
            print(json.dumps(in_child(request["work"], request, directory)), flush=True)


if __name__ == "__main__":
    main()
