"""What runs inside the confined child: the user's source, its launches, Triton, ptxas or AMD's assembler, nvdisasm.

The zygote imports this module and calls ``warm`` once. All results are files in the slot's directory, written as
soon as they are known; the parent treats every one of them as hostile.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import triton
from triton.backends.amd.compiler import get_amd_codegen_revision
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend
from triton.experimental.gluon._runtime import GluonASTSource

from pipelines.hook.flush import Flusher
from pipelines.json_values import json_safe
from pipelines.kernels import torch_choice
from pipelines.kernels.capture import Capture, Launch
from pipelines.kernels.inductor import modules as inductor
from pipelines.triton_path import llvm_printing, slot
from pipelines.triton_path.backend_options import describe_fields, plain
from pipelines.triton_path.errors import UserError, describe, out_of_memory
from pipelines.triton_path.imports import Sources
from pipelines.triton_path.instrument import Instrument
from pipelines.triton_path.launches import Request, find_launch, write_launch
from pipelines.triton_path.running import execute
from pipelines.triton_path.targets import CHIPS, chip
from pipelines.triton_path.toolchain import AMD_CODEGEN
from pipelines.triton_path.virtual import clean, virtualize_locations

# One chip of each backend, whose options stand for those of all.
_DESCRIBED = ("sm_90", "gfx942")

_flusher: Flusher


def warm(directory: Path) -> None:
    """Launch and compile a small kernel for sm_80 without dumps, so that no child pays for the first of any target."""
    global _flusher
    name = directory / "warm.py"
    name.write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\n"
        "def warm(x_ptr, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    x = tl.load(x_ptr + at, mask=at < n, other=0.0)\n"
        "    tl.store(x_ptr + at, tl.exp(x - tl.max(x, axis=0)) / tl.sum(x, axis=0), mask=at < n)\n"
        "\nclass Plain:\n    dtype = 'fp32'\n    data_ptr = lambda self: 256\n\nwarm[(1,)](Plain(), 128, BLOCK=128)\n"
    )
    virtualize_locations()
    inductor.warm()
    torch_choice.warm()
    capture = Capture(_target("sm_80"), chip("sm_80").properties())
    capture.install()
    execute(str(name), {"__name__": "warm"})
    capture.remove()
    triton.compile(_source(capture.launches[0]), target=_target("sm_80"))
    _flusher = Flusher(directory)
    for each in CHIPS.values():
        # Triton asks each of its ptxas for the version, once a process and target, and loads AMD's code generator.
        make_backend(_target(each.arch)).hash()
        if each.backend.name == "cuda":
            get_ptxas(int(each.triton_arch))


def describe_toolchain(_: Request) -> None:
    """Write the options classes' fields with their defaults, and the tools' versions, to ``toolchain.json``."""
    slot.enter()
    tools = {
        "ptxas": get_ptxas(80).path,
        "ptxas-blackwell": get_ptxas(90).path,
        "nvdisasm": triton.knobs.nvidia.nvdisasm.path,
    }
    versions = {name: _version(path) for name, path in tools.items()}
    versions[AMD_CODEGEN] = f"LLVM {get_amd_codegen_revision()}"
    options = {CHIPS[arch].backend.name: describe_fields(make_backend(_target(arch))) for arch in _DESCRIBED}
    data = {"triton": triton.__version__, "options": options, "tools": tools, "versions": versions}
    slot.write_output("toolchain.json", json.dumps(data))


def disassemble(request: Request) -> None:
    """Run nvdisasm over ``input.cubin``; the text goes to ``sass.out``, its words to stderr as they are."""
    with Path("sass.out").open("wb") as out:
        ended = subprocess.run([request["nvdisasm"], *request["flags"], "input.cubin"], stdout=out, check=False)
    if ended.returncode:
        sys.exit(1)


def compile_kernel(request: Request) -> None:
    """Compile what the request asks for; errors of the user's source are a result, written to ``error.json``.

    Raises:
        MemoryError: there was too little memory, whatever it was for.
    """
    slot.enter()
    faulthandler.disable()  # a crash is told by its signal; a traceback of this project's own files helps nobody
    os.environ["TRITON_CACHE_DIR"] = str(slot.directory() / ".cache")
    launch: Launch | None = None
    options: Any = None

    def on_ptx() -> None:
        """Leave all that can be shown while ptxas runs."""
        if request.get("print_llvm"):
            raise llvm_printing.AssemblyReachedError
        _write_metadata(instrument, options)
        _flusher.flush()

    instrument = Instrument(slot.EventLog(), on_ptx)
    try:
        target = _target(request["target"])
        backend = make_backend(target)
        found = find_launch(request, target, backend)
        write_launch(found)
        launch, options = found.launch, found.options
        instrument.install()
        if request.get("print_llvm"):
            llvm_printing.install()
        with llvm_printing.timing() if request.get("time_passes") else contextlib.nullcontext():
            triton.compile(_source(launch), target=target, options=plain(options))
        _write_metadata(instrument, options)
    except llvm_printing.AssemblyReachedError:
        return
    except BaseException as error:  # the user's source may raise anything, and it is all a result
        if out_of_memory(error):
            raise MemoryError from error
        _write_error(error, Sources.of(request).own, launch, instrument.stage)


def _write_error(error: BaseException, own: Collection[str], launch: Launch | None, stage: str | None) -> None:
    """Write ``error.json``; before its first stage an error without a place is at the kernel."""
    kernel = launch.function if launch and stage is None else None
    data = {**describe(error, own, kernel), "stage": stage, "user": isinstance(error, UserError)}
    slot.write_output("error.json", json.dumps(data))


def _source(launch: Launch) -> ASTSource:
    """Return what Triton compiles; Gluon kernels begin below ttir."""
    kind = GluonASTSource if launch.function.is_gluon() else ASTSource
    return kind(launch.function, launch.signature, launch.constexprs, launch.attributes)


def _write_metadata(instrument: Instrument, options: Any) -> None:
    """Keep what the lowering found out: no options, no environment, no hash of paths."""
    metadata, known = instrument.metadata, {*plain(options), "hash", "target", "triton_version"}
    found = {key: json_safe(value) for key, value in metadata.items() if key not in known and not key.isupper()}
    found |= {"num_warps": metadata.get("num_warps"), "num_ctas": metadata.get("num_ctas")}
    slot.write_output("metadata.json", json.dumps(found))


def _target(arch: str) -> GPUTarget:
    found = chip(arch)
    return GPUTarget(found.backend.name, found.triton_arch, found.warp_size)


def _version(path: str) -> str:
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return clean(text.strip().splitlines()[-1])
