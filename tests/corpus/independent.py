"""What Triton's own JIT makes of a source's launches, without Loupe's capture: only the torch that it imports is ours.

Run as a program: reads jobs as JSON lines on stdin, forks a child for each, prints its answer as a JSON line.
{"files": {path: text}, "main": path, "target": arch} answers [launch, ...], distinct ones in order, each as Triton
specialized it on the way to its cache; with "compile": [index, ...] it answers their errors, null where they compile.
"""

import json
import os
import sys
import tempfile
import traceback
import types
from pathlib import Path
from types import SimpleNamespace

import triton
import triton.runtime.jit
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime.jit import JITCallable

from pipelines.kernels.gpu import Gpu
from pipelines.kernels.torch_standin import install

ROOT = str(Path(triton.__file__).parent)
tl = triton.language
DTYPES = {kind: name for name, kind in vars(tl).items() if type(kind) is tl.dtype}


class Event:
    """Two points of a clock are a millisecond apart."""

    def __init__(self, **_):
        pass

    def record(self):
        pass

    def elapsed_time(self, _):
        return 1.0


class Driver:
    """As little of a driver as the JIT asks for before it has a compiled kernel."""

    def __init__(self, target, properties):
        self.target, self.properties = target, properties
        self.utils = SimpleNamespace(get_device_properties=lambda _: properties)

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, _):
        return 0

    def get_benchmarker(self):
        return lambda call, quantiles: (call(), [1.0] * len(quantiles))[1]

    def get_device_interface(self):
        return SimpleNamespace(Event=Event, synchronize=lambda: None, current_device=lambda: 0)


def value_of(constant):
    """Write a constexpr as JSON, by the names that a source has for dtypes and functions."""
    if isinstance(constant, tl.constexpr):
        return value_of(constant.value)
    if isinstance(constant, list | tuple):
        return [value_of(item) for item in constant]
    if isinstance(constant, tl.dtype):
        return f"tl.{DTYPES[constant]}"
    if isinstance(constant, JITCallable):
        return {"function": constant.__name__}
    if callable(constant):
        return {"function": f"{constant.__module__}.{constant.__qualname__}"}
    if isinstance(constant, str):
        return constant.replace(ROOT, "<triton>")
    return constant if isinstance(constant, int | float | None) else repr(constant)


def argument(path, kind, constants, attributes):
    """Write an argument, a tuple's members inside it."""
    if isinstance(kind, tuple):
        return [argument((*path, i), item, constants, attributes) for i, item in enumerate(kind)]
    if kind == "constexpr":
        return {"value": value_of(constants[path])}
    return {"type": kind, "divisibility": dict(attributes.get(path) or []).get("tt.divisibility")}


def launches_of(job, target):
    """Run the source and keep what the JIT would look up, as it hands it to its hook; nothing is compiled."""
    found = {}

    def serialize(_, signature, constants, attributes, options, *__):
        function = sys._getframe(1).f_locals["self"]
        made = {
            "kernel": function.__name__,
            "arguments": [argument((i,), kind, constants, attributes) for i, kind in enumerate(signature.values())],
            "options": {name: value_of(value) for name, value in options.__dict__.items()},
        }
        distinct = (id(function), json.dumps(made, sort_keys=True, default=repr))
        found.setdefault(distinct, (made, (function, signature, constants, attributes), options))
        return ""

    triton.runtime.jit.serialize_specialization_data = serialize
    triton.knobs.runtime.jit_cache_hook = lambda **_: True  # as where a kernel is in a cache: not compiled here
    triton.runtime.driver.set_active(Driver(target, job["gpu"]["properties"]))
    main = Path(job["main"])
    sys.path.insert(0, str(Path.cwd()))
    parts = main.with_suffix("").parts
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__file__, module.__package__ = str(main), ".".join(parts[:-1])
    if module.__package__:
        __import__(module.__package__)
    sys.argv = [str(main)]
    exec(compile(main.read_text(), str(main), "exec"), module.__dict__)
    triton.knobs.runtime.jit_cache_hook = None
    return list(found.values())


def compiles(found, target):
    """Return the error of ``triton.compile``, None where it compiles."""
    _, source, options = found
    try:
        kind = GluonASTSource if source[0].is_gluon() else ASTSource
        triton.compile(kind(*source), target=target, options=dict(options.__dict__))
    except Exception as error:
        while isinstance(error, triton.compiler.errors.CompilationError) and error.__cause__ is not None:
            error = error.__cause__
        return getattr(error, "error_message", None) or str(error) or type(error).__name__
    return None


def work(job):
    """Do a job in an empty folder of its own."""
    os.chdir(tempfile.mkdtemp(dir=os.environ["TMPDIR"]))
    for name, text in job["files"].items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    os.environ["TRITON_CACHE_DIR"] = str(Path("cache").resolve())
    install(Gpu(**job["gpu"]))
    arch = job["target"]
    backend, number = ("hip", arch) if arch.startswith("gfx") else ("cuda", int(arch.removeprefix("sm_")))
    target = GPUTarget(backend, number, job["warp_size"])
    found = launches_of(job, target)
    if "compile" in job:
        return [compiles(found[index], target) for index in job["compile"]]
    return [made for made, _, _ in found]


def main():
    for line in sys.stdin:
        job = json.loads(line)
        read, write = os.pipe()
        if os.fork() == 0:
            try:
                answer = work(job)
            except BaseException:
                answer = {"error": traceback.format_exc()}
            with os.fdopen(write, "w") as out:
                json.dump(answer, out, default=repr)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            print(answer.read() or "{}", flush=True)
        os.wait()


if __name__ == "__main__":
    main()
