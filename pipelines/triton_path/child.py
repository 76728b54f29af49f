"""What runs inside the confined child: the user's source, its launches, Triton, ptxas, nvdisasm.

The zygote imports this module and calls ``warm`` once. All results are files in the working directory, written as
soon as they are known; the parent treats every one of them as hostile.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDAOptions, get_ptxas
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

from pipelines.kernels.capture import Capture, Launch
from pipelines.trace import json_safe
from pipelines.triton_path.errors import UserError, clean, describe
from pipelines.triton_path.given import given_launches
from pipelines.triton_path.instrument import (
    TRITON_ROOT,
    EventLog,
    Instrument,
    virtual_path,
    virtualize_locations,
    write_output,
)

Request = dict[str, Any]


def warm(directory: Path) -> None:
    """Compile a small kernel for sm_80 without dumps, so that no child pays for the first compile of any target."""
    name = directory / "warm.py"
    name.write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\n"
        "def warm(x_ptr, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    x = tl.load(x_ptr + at, mask=at < n, other=0.0)\n"
        "    tl.store(x_ptr + at, tl.exp(x - tl.max(x, axis=0)) / tl.sum(x, axis=0), mask=at < n)\n"
    )
    virtualize_locations()
    namespace = _execute(str(name), "warm")
    source = ASTSource(namespace["warm"], {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 128})
    triton.compile(source, target=_target("sm_80"))


def describe_toolchain(_: Request) -> None:
    """Write the options class's fields with their defaults, and the tools' versions, to ``toolchain.json``."""
    options = make_backend(_target("sm_90")).parse_options({})
    fields = [
        {
            "name": f.name,
            "type": str(f.type).replace("typing.", ""),
            "default": json_safe(getattr(options, f.name)),
        }
        for f in dataclasses.fields(CUDAOptions)
    ]
    tools = {
        "ptxas": get_ptxas(80).path,
        "ptxas-blackwell": get_ptxas(90).path,
        "nvdisasm": triton.knobs.nvidia.nvdisasm.path,
    }
    versions = {name: _version(path) for name, path in tools.items()}
    data = {"triton": triton.__version__, "options": fields, "tools": tools, "versions": versions}
    write_output("toolchain.json", json.dumps(data))


def disassemble(request: Request) -> None:
    """Run nvdisasm over ``input.cubin``; the text goes to ``sass.out``."""
    with Path("sass.out").open("wb") as out:
        subprocess.run([request["nvdisasm"], *request["flags"], "input.cubin"], stdout=out, check=True)


def compile_kernel(request: Request) -> None:
    """Compile what the request asks for; errors of the user's source are a result, written to ``error.json``."""
    os.environ["TRITON_CACHE_DIR"] = str(Path("cache").absolute())
    instrument = Instrument(EventLog())
    try:
        launch = _find_launch(request)
        _write_launch(launch, origin="captured" if request["arguments"] is None else "given")
        instrument.install()
        source = ASTSource(launch.function, launch.signature, launch.constexprs, launch.attributes)
        triton.compile(source, target=_target(request["target"]), options=_plain(launch.options))
        write_output("metadata.json", json.dumps(_metadata(instrument.metadata, launch.options)))
    except Exception as error:  # the user's source may raise anything, and it is all a result
        data = {
            **describe(error, request["file"]),
            "stage": instrument.stage,
            "user": isinstance(error, UserError),
        }
        write_output("error.json", json.dumps(data))


def _find_launch(request: Request) -> Launch:
    backend = make_backend(_target(request["target"]))
    if request["arguments"] is None:
        launches = _captured(request)
        if not launches:
            wanted = f"{request['kernel']!r}" if request["kernel"] else "a kernel"
            raise UserError(
                f"the source's own code never launches {wanted}; give its arguments, or add launch code "
                'under if __name__ == "__main__"'
            )
    else:
        launches = given_launches(_execute(request["file"], Path(request["file"]).stem), request, backend)
    found = [{"kernel": x.function.__name__, "config": x.config, "grid": x.grid} for x in launches]
    write_output("launches.json", json.dumps(found))
    if request["launch"] >= len(launches):
        raise UserError(f"there are {len(launches)} launches, none numbered {request['launch']}")
    launch = launches[request["launch"]]
    launch.options = backend.parse_options({**_plain(launch.options), **request["options"]})
    return launch


def _captured(request: Request) -> list[Launch]:
    capture = Capture(_target(request["target"]), request["properties"])
    capture.install()
    try:
        _execute(request["file"], "__main__")
    except Exception:
        if not capture.launches:
            raise
    finally:
        capture.remove()
    return [x for x in capture.launches if request["kernel"] in (None, x.function.__name__)]


def _execute(file: str, name: str) -> dict[str, Any]:
    """Run a source as the module ``name``, so that its own ``__name__ == "__main__"`` block runs or not."""
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    code = compile(Path(file).read_bytes(), file, "exec")
    exec(code, module.__dict__)  # noqa: S102 - running user code is this child's purpose, and it is confined
    return module.__dict__


def _write_launch(launch: Launch, origin: str) -> None:
    function = launch.function
    flat = {path[0]: value for path, value in launch.constexprs.items() if len(path) == 1}
    arguments = []
    for index, name in enumerate(function.arg_names):
        attributes = launch.attributes.get((index,)) or []
        divisibility = next((value for key, value in attributes if key == "tt.divisibility"), None)
        kind = launch.signature[name]
        value = _constant(flat.get(index)) if kind == "constexpr" else None
        kind = kind if isinstance(kind, str) else str(kind)
        arguments.append({"name": name, "type": kind, "divisibility": divisibility, "value": value})
    shown = [_described(n, v) for n, v in zip(function.arg_names, launch.values, strict=False)]
    data = {
        "name": function.__name__,
        "origin": origin,
        "arguments": arguments,
        "options": {key: json_safe(_virtual(value)) for key, value in _plain(launch.options).items()},
        "launch": {"grid": launch.grid, "config": launch.config, "arguments": shown} if origin == "captured" else None,
    }
    write_output("launch.json", json.dumps(data))


def _described(name: str, value: Any) -> dict[str, Any]:
    """Say what was passed: a tensor-like's dtype, shape and strides (in elements), or a plain value."""
    if not hasattr(value, "data_ptr"):
        return {"name": name, "dtype": type(value).__name__, "value": _constant(value)}
    shape, strides = (
        getattr(value, "shape", None),
        getattr(value, "stride", None) or getattr(value, "strides", None),
    )
    strides = strides() if callable(strides) else strides
    return {"name": name, "dtype": str(value.dtype), "shape": _integers(shape), "strides": _integers(strides)}


def _integers(values: Any) -> list[int] | None:
    return [int(value) for value in values] if values is not None else None


def _constant(value: Any) -> Any:
    value = getattr(value, "value", value) if isinstance(value, tl.constexpr) else value
    if isinstance(value, tl.dtype):
        return f"tl.{value}"
    return getattr(value, "__name__", None) if callable(value) else json_safe(value)


def _metadata(metadata: dict[str, Any], options: Any) -> dict[str, Any]:
    """Keep what the lowering found out: no options, no environment, no hash of paths."""
    known = {*_plain(options), "hash", "target", "triton_version"}
    found = {key: json_safe(value) for key, value in metadata.items() if key not in known and not key.isupper()}
    return {**found, "num_warps": metadata.get("num_warps"), "num_ctas": metadata.get("num_ctas")}


def _plain(options: Any) -> dict[str, Any]:
    return dict(options.__dict__) if not isinstance(options, dict) else dict(options)


def _virtual(value: Any) -> Any:
    if isinstance(value, str):
        return virtual_path(value)
    return tuple(_virtual(item) for item in value) if isinstance(value, tuple) else value


def _target(arch: str) -> GPUTarget:
    return GPUTarget("cuda", int(arch.removeprefix("sm_")), 32)


def _version(path: str) -> str:
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return clean(text.strip().splitlines()[-1])


def executables() -> list[str]:
    """Return the only files a child may execute."""
    root = Path(TRITON_ROOT) / "backends" / "nvidia" / "bin"
    return [str(path) for path in sorted(root.iterdir()) if os.access(path, os.X_OK)]
