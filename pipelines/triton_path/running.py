"""Run the user's source inside the confined child, so that nothing it sets decides what is recorded afterwards."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import os
import sys
import tempfile
import types
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton

from pipelines.triton_path import slot

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
    """A source that was run: what it defined, and what ended it early."""

    file: str
    namespace: dict[str, Any]
    error: BaseException | None


def run_source(file: str, *, main: bool) -> Ran:
    """Run a source as a program would run it, or import it, so that its ``__name__ == "__main__"`` block is left out.

    Raises:
        MemoryError: the source ran out of memory, which is no fault that it could be told of.
    """
    entered = dict(os.environ)
    os.environ.update(_SILENT)
    _pin()
    sys.argv = [file]
    name = "__main__" if main else _module_name(Path(file).stem)
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    try:
        execute(file, module.__dict__)
    except MemoryError:
        raise
    except BaseException as error:  # the source may end in any way, also by SystemExit
        return Ran(file, module.__dict__, error)
    finally:
        os.chdir(slot.directory())
        _restore(entered)
        tempfile.tempdir = str(slot.directory())
    return Ran(file, module.__dict__, None)


def execute(file: str, namespace: dict[str, Any]) -> None:
    """Execute a file and keep its text."""
    data = Path(file).read_bytes()
    code = compile(data, file, "exec")
    keep_text(file, data)
    exec(code, namespace)  # noqa: S102 - running user code is this child's purpose, and it is confined


def execute_tree(tree: ast.Module, file: str, namespace: dict[str, Any]) -> None:
    """Execute a part of a file."""
    exec(compile(tree, file, "exec"), namespace)  # noqa: S102 - as above


def keep_text(file: str, data: bytes) -> None:
    """Have a file's text at hand for Triton, wherever the source may move to."""
    with suppress(SyntaxError, UnicodeDecodeError):
        text = importlib.util.decode_source(data)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


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
