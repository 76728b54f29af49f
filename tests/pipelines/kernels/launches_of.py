"""Runs launch code with the stand-in for torch or with the real one, and prints what it launches; its own process.

Each file runs in a forked child, since torch is made ready once for a process: ``standin|real ARCH FILE...``.
"""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

from triton.backends.compiler import GPUTarget

from pipelines.kernels.capture import Capture
from pipelines.kernels.gpu import Gpu
from pipelines.kernels.torch_choice import Torch
from pipelines.triton_path.targets import chip


def launches(path: Path, arch: str, *, real: bool) -> list[dict[str, Any]]:
    """Return every distinct launch: its kernel, types, constexprs, specialization, options, grid and tensors."""
    target = chip(arch)
    capture = Capture(GPUTarget("cuda", target.triton_arch, 32), target.properties(), [str(path)])
    Torch(Gpu(target.triton_arch, target.properties(), target.name), real=real).install()
    capture.install()
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return [
        {
            "kernel": item.function.__name__,
            "signature": {name: str(kind) for name, kind in item.signature.items()},
            "constexprs": {item.function.arg_names[at[0]]: repr(value) for at, value in item.constexprs.items()},
            "attributes": {item.function.arg_names[at[0]]: value for at, value in item.attributes.items()},
            "options": repr(item.options),
            "config": repr(item.config),
            "grid": item.grid,
            "shapes": [[*getattr(value, "shape", ())] for value in item.values],
            "strides": [[*value.stride()] for value in item.values if hasattr(value, "stride")],
        }
        for item in capture.launches
    ]


def main(which: str, arch: str, paths: list[str]) -> None:
    """Print one line of JSON for each file."""
    if which == "real":
        __import__("torch")
    for path in paths:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                sys.stdout = sys.stderr  # what the source prints
                os.write(1, json.dumps(launches(Path(path), arch, real=which == "real")).encode() + b"\n")
                code = 0
            finally:
                if code:
                    sys.excepthook(*sys.exc_info())
                os._exit(code)
        if os.waitpid(pid, 0)[1]:
            os.write(1, b"null\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
