"""Run the user's source inside the confined child, so that nothing it sets decides what is recorded afterwards."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
import tempfile
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton

from pipelines.triton_path import slot
from pipelines.triton_path.imports import Entry, Hidden, PackageLoader, Sources, compile_source, loaded, prepare

# What records a compilation, and what would turn it to other targets, files or tools. The rest of the environment is
# the source's own affair: it may well set TRITON_F32_DEFAULT or DISABLE_PTXAS_OPT.
_OURS = (
    "HOME",
    "PATH",
    "TMPDIR",
    "TRITON_ALWAYS_COMPILE",
    "TRITON_CACHE_DIR",
    "TRITON_CACHE_MANAGER",
    "TRITON_DEFAULT_BACKEND",
    "TRITON_DUMP_PTXAS_LOG",
    "TRITON_FRONT_END_DEBUGGING",
    "TRITON_HOME",
    "TRITON_INTERPRET",
    "TRITON_KERNEL_DUMP",
    "TRITON_KERNEL_OVERRIDE",
    "TRITON_NVDISASM_PATH",
    "TRITON_OVERRIDE_ARCH",
    "TRITON_PTXAS_BLACKWELL_PATH",
    "TRITON_PTXAS_PATH",
    "TRITON_REMOTE_CACHE_BACKEND",
    "TRITON_REPRODUCER_PATH",
    "TRITON_STORE_BINARY_ONLY",
    "LLVM_ENABLE_TIMING",
    "LLVM_IR_ENABLE_DUMP",
    "MLIR_DISABLE_MULTITHREADING",
    "MLIR_DUMP_PATH",
    "MLIR_ENABLE_DIAGNOSTICS",
    "MLIR_ENABLE_DUMP",
    "MLIR_ENABLE_REMARK",
    "MLIR_ENABLE_TIMING",
    "USE_IR_LOC",
)

# While the source runs it may compile something itself, which belongs to no trace.
_SILENT = {"MLIR_ENABLE_DUMP": "0", "MLIR_ENABLE_DIAGNOSTICS": ""}


@dataclass(frozen=True)
class Ran:
    """A source that was run: its files, what the first one defined, and what ended it early."""

    sources: Sources
    namespace: dict[str, Any]
    error: BaseException | None

    @property
    def file(self) -> str:
        """The file that was run."""
        return self.sources.file

    @property
    def own(self) -> frozenset[str]:
        """The names of all files that are the user's."""
        return self.sources.own

    @property
    def namespaces(self) -> list[dict[str, Any]]:
        """What the files define, that of the first one before those that it imported."""
        return [self.namespace, *loaded()]


def run_source(sources: Sources, *, main: bool) -> Ran:
    """Run a source as a program would run it, or import it, so that its ``__name__ == "__main__"`` block is left out.

    Raises:
        MemoryError: the source ran out of memory, which is no fault that it could be told of.
    """
    sys.argv = [sources.file]
    namespace: dict[str, Any] = {}
    try:
        with undone(), Hidden(sources):
            namespace = _namespace(sources, main=main)
            if not isinstance(namespace.get("__loader__"), PackageLoader):
                execute(sources.file, namespace)
    except MemoryError:
        raise
    except BaseException as error:  # the source may end in any way, also by SystemExit
        return Ran(sources, namespace, error)
    return Ran(sources, namespace, None)


@contextmanager
def undone() -> Iterator[None]:
    """Undo afterwards what the source changed of ours: environment, Triton's knobs, working directory."""
    entered = dict(os.environ)
    os.environ.update(_SILENT)
    _pin()
    try:
        yield
    finally:
        os.chdir(slot.directory())
        _restore(entered)
        tempfile.tempdir = str(slot.directory())


def _namespace(sources: Sources, *, main: bool) -> dict[str, Any]:
    """Return the namespace to run the first file in; a file that its own package has imported is there already."""
    entry = Entry(_module_name(Path(sources.file).stem), "", sources.file) if sources.alone else prepare(sources)
    name = "__main__" if main else entry.name
    if not main and isinstance(getattr(sys.modules.get(name), "__loader__", None), PackageLoader):
        return vars(sys.modules[name])
    module = types.ModuleType(name)
    module.__file__ = entry.origin
    module.__package__ = entry.package or None
    sys.modules[name] = module
    return vars(module)


def execute(file: str, namespace: dict[str, Any]) -> None:
    """Execute a file of the slot, or one of the toolchain's own."""
    code = compile_source(Path(file).read_bytes(), file)
    exec(code, namespace)  # noqa: S102 - running user code is this child's purpose, and it is confined


def execute_tree(tree: ast.Module, file: str, namespace: dict[str, Any]) -> None:
    """Execute a part of a file."""
    exec(compile(tree, file, "exec", dont_inherit=True), namespace)  # noqa: S102 - as above


def _module_name(stem: str) -> str:
    """Return the file's own name as a module, unless a module that exists has it: none may be shadowed."""
    taken = not stem.isidentifier() or stem in sys.modules or importlib.util.find_spec(stem) is not None
    return f"_{stem}_source" if taken else stem


def _restore(entered: Mapping[str, str]) -> None:
    for group in vars(triton.knobs).values():
        if isinstance(group, triton.knobs.base_knobs):
            for name, knob in group.knob_descriptors.items():
                if knob.key in _OURS:
                    delattr(group, name)
    for key in _OURS:
        os.environ.pop(key, None)
    for key, value in entered.items():
        os.environ.setdefault(key, value)
    _pin()


def _pin() -> None:
    """Keep decorators making functions that can be compiled, and for this target, whatever the environment says."""
    triton.knobs.runtime.interpret = False
    triton.knobs.runtime.override_arch = None
