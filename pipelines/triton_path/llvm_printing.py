"""Have LLVM print the IR after each of its passes, or MLIR the times of its own, inside the confined child.

Triton turns LLVM's printing on by ``LLVM_IR_ENABLE_DUMP``. LLVM then writes each token to standard error by itself,
which takes nine tenths of the time, so the stream is given a buffer while a pipeline runs, and a file of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator, Sequence
from typing import Any

from triton._C import libtriton
from triton._C.libtriton import llvm
from triton.backends.amd import compiler as amd

from pipelines.triton_path.slot import directory, write_output

# With it every snapshot is a whole module, whatever a pass ran on, so that two of them can be compared.
MODULE_SCOPE = "print-module-scope"
SWITCH = "LLVM_IR_ENABLE_DUMP"
INPUT = "llvm-input.out"
TIMING, TIMING_SWITCH = "timing.out", "MLIR_ENABLE_TIMING"
OPTIMIZER_DUMP, CODEGEN_DUMP = "llvm-ir.dump", "llvm-codegen.dump"

_STDERR = 2
_BUFFER = 1 << 20
# llvm::raw_ostream::BufferKind
_UNBUFFERED, _EXTERNAL = 0, 2


class AssemblyReachedError(Exception):
    """All that LLVM does has been printed: the compilation need not go on."""


class ErrorStream:
    """``llvm::errs()`` of libtriton, by the symbols that it exports."""

    def __init__(self) -> None:
        library = ctypes.CDLL(libtriton.__file__)
        errs = library._ZN4llvm4errsEv
        errs.restype = ctypes.c_void_p
        self._flush = library._ZN4llvm11raw_ostream11SetBufferedEv
        self._flush.argtypes = [ctypes.c_void_p]
        self._set_buffer = library._ZN4llvm11raw_ostream16SetBufferAndModeEPcmNS0_10BufferKindE
        self._set_buffer.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._stream = errs()
        self._buffer = ctypes.create_string_buffer(_BUFFER)

    @contextlib.contextmanager
    def into(self, name: str) -> Iterator[None]:
        """Write to a file of the slot, buffered, for as long as the context lasts."""
        kept = os.dup(_STDERR)
        file = os.open(directory() / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.dup2(file, _STDERR)
        os.close(file)
        self._flush(self._stream)
        self._set_buffer(self._stream, self._buffer, _BUFFER, _EXTERNAL)
        try:
            yield
        finally:
            self._flush(self._stream)
            self._set_buffer(self._stream, None, 0, _UNBUFFERED)
            os.dup2(kept, _STDERR)
            os.close(kept)


def install() -> None:
    """Print from now on: the optimizer's passes to one file, those of code generation to another.

    Each call gets the flag, since Triton takes back what a call has set.
    """
    stream = ErrorStream()
    optimize, translate, compile_amdgpu = llvm.optimize_module, llvm.translate_to_asm, amd.compile_amdgpu

    def optimized(
        module: Any, level: Any, arch: str = "", features: str = "", flags: Sequence[str] = (), *rest: Any, **named: Any
    ) -> Any:
        write_output(INPUT, str(module))
        with _printing(stream, OPTIMIZER_DUMP):
            return optimize(module, level, arch, features, [*flags, MODULE_SCOPE], *rest, **named)

    def translated(
        source: str, triple: str, chip: str, features: str, flags: Sequence[str], *rest: Any, **named: Any
    ) -> Any:
        with _printing(stream, CODEGEN_DUMP):
            return translate(source, triple, chip, features, [*flags, MODULE_SCOPE], *rest, **named)

    def compiled(*args: Any, **named: Any) -> Any:
        # AMD's generator is a library with an LLVM of its own, whose stream cannot be reached and stays slow.
        with _printing(stream, CODEGEN_DUMP):
            return compile_amdgpu(*args, **{**named, "dump_ir": True, "flags": [*named["flags"], MODULE_SCOPE]})

    llvm.optimize_module, llvm.translate_to_asm, amd.compile_amdgpu = optimized, translated, compiled


@contextlib.contextmanager
def timing() -> Iterator[None]:
    """Have every pass manager report its times to a file, for as long as the context lasts."""
    with _switched(TIMING_SWITCH), ErrorStream().into(TIMING):
        yield


@contextlib.contextmanager
def _printing(stream: ErrorStream, name: str) -> Iterator[None]:
    with _switched(SWITCH), stream.into(name):
        yield


@contextlib.contextmanager
def _switched(name: str) -> Iterator[None]:
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]
