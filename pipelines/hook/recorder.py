"""Watches ``triton.compile`` in the program's own process, whatever its version, and records each compilation.

libtriton has one stream of passes, so that compilations of several threads take turns while they are recorded.
"""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
import os
import secrets
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .attempt import Attempt
from .dump import Dump, DumpError
from .folder import GLUON_INPUT
from .guard import Guard

# A compilation that waits longer for another's end is done unrecorded: a program may have it wait for itself.
PATIENCE_S = 600.0

_LAUNCH = "_loupe_attempt"
_TUNING = "_loupe_tuning"


class Recorder:
    """Owns the folder, the stream and the hooks; ``install`` it once Triton is imported."""

    def __init__(self, directory: Path, guard: Guard) -> None:
        self._directory = directory
        self._guard = guard
        self._local = threading.local()
        self._numbers = itertools.count(1)
        self._groups = itertools.count(1)
        self._after_fork()
        self._dump: Dump | None = None
        self._recordable = True
        self._run_passes: Callable[..., Any]

    def _after_fork(self) -> None:
        """Begin afresh in a child: a lock that another thread held, and an attempt of the parent's, are not its own."""
        self._lock = threading.RLock()
        self._token = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._local = threading.local()

    def install(self) -> None:
        """Put the hooks in place."""
        import triton
        import triton.compiler.compiler as compiler
        from triton._C.libtriton import ir, llvm
        from triton.backends import backends
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        os.register_at_fork(after_in_child=self._after_fork)
        original = compiler.compile
        compile_ = self._compiling(original)
        for owner in (triton, triton.compiler, compiler, *_functions(JITFunction, original)):
            if getattr(owner, "compile", None) is original:
                owner.compile = compile_
        for backend in backends.values():
            _wrap(backend.compiler, "add_stages", self._adding)
        self._run_passes = ir.pass_manager.run
        _wrap(ir.pass_manager, "run", self._managing)
        _wrap(llvm, "to_module", self._lowering)
        _wrap(compiler.ASTSource, "__init__", self._noting)
        _wrap(compiler.CompiledKernel, "launch_metadata", self._launching)
        for name in ("run", "warmup"):
            _wrap(Autotuner, name, self._tuned)

    @property
    def _attempt(self) -> Attempt | None:
        return getattr(self._local, "attempt", None)

    def _compiling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def compile_(src: Any, *args: Any, **kwargs: Any) -> Any:
            lock = self._lock
            if not self._recordable or not lock.acquire(timeout=PATIENCE_S):
                return original(src, *args, **kwargs)
            outer, attempt = self._attempt, Attempt(src, getattr(src, _TUNING, None))
            self._local.attempt = attempt
            try:
                kernel = original(src, *args, **kwargs)
                self._end(attempt, None)
            except BaseException as error:  # the program's own; it is raised again
                self._end(attempt, error)
                raise
            finally:
                self._local.attempt = outer
                lock.release()
            if attempt.begun and hasattr(kernel, "__dict__"):
                setattr(kernel, _LAUNCH, attempt)
            return kernel

        return compile_

    def _end(self, attempt: Attempt, error: BaseException | None) -> None:
        if attempt.begun:
            with self._guard:
                attempt.end(error)

    def _adding(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Triton has not found the kernel in its cache, and asks the backend for its stages."""

        @functools.wraps(original)
        def add_stages(backend: Any, stages: dict[str, Any], options: Any, *rest: Any, **more: Any) -> Any:
            result = original(backend, stages, options, *rest, **more)
            attempt = self._attempt
            if attempt and not attempt.begun:
                with self._guard:
                    self._begin(attempt, backend, stages, options)
            return result

        return add_stages

    def _begin(self, attempt: Attempt, backend: Any, stages: dict[str, Any], options: Any) -> None:
        if self._dump is None:
            dump = Dump(self._directory, self._run_passes)
            try:
                dump.open()
            except DumpError as error:
                self._recordable = False
                self._guard.tell(f"nothing is recorded: {error}")
                return
            self._dump = dump
            if dump.given:
                self._guard.tell(f"MLIR_DUMP_PATH={dump.given} is not written: the passes go to {self._directory}")
        folder = self._directory / f"{self._token}-{next(self._numbers)}"
        attempt.begin(folder, self._dump, backend, options)
        names = _globals(type(backend))
        if names.get("subprocess") is subprocess:
            names["subprocess"] = _Subprocess(self)
        for extension, function in list(stages.items()):
            if extension != GLUON_INPUT:
                stages[extension] = self._stage(attempt, extension, function)

    def _stage(self, attempt: Attempt, extension: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(source: Any, metadata: dict[str, Any]) -> Any:
            assert self._dump is not None  # noqa: S101 - it was opened before there was a stage
            with self._guard:
                attempt.enter(extension, metadata)
            try:
                with self._dump.printing():
                    result = function(source, metadata)
            except BaseException:  # whatever ends the stage, what its passes left is kept; it is raised again
                with self._guard:
                    attempt.keep_unfinished()
                raise
            with self._guard:
                attempt.leave(extension, result)
            return result

        return run

    def _managing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(manager: Any, module: Any, *name: Any) -> Any:
            attempt = self._attempt
            if attempt is None or not attempt.begun:
                return original(manager, module, *name)
            with self._guard:
                attempt.begin_passes(manager, name[0] if name else None)
            result = original(manager, module, *name)
            with self._guard:
                attempt.end_passes(module)
            return result

        return run

    def _lowering(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def to_module(module: Any, *rest: Any) -> Any:
            attempt = self._attempt
            if attempt and attempt.begun:
                with self._guard:
                    attempt.keep_dialect(module)
            return original(module, *rest)

        return to_module

    def _noting(self, original: Callable[..., None]) -> Callable[..., None]:
        """Remember on whose behalf a kernel is compiled: another thread may do it."""

        @functools.wraps(original)
        def init(source: Any, fn: Any, *args: Any, **kwargs: Any) -> None:
            original(source, fn, *args, **kwargs)
            tuning = getattr(self._local, "tuning", None)
            if tuning and _innermost(tuning[0]) is fn:
                setattr(source, _TUNING, tuning)

        return init

    def _tuned(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            outer = getattr(self._local, "tuning", None)
            self._local.tuning = (tuner, f"{self._token}-{next(self._groups)}")
            try:
                return original(tuner, *args, **kwargs)
            finally:
                self._local.tuning = outer

        return run

    def _launching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def launch_metadata(kernel: Any, grid: Any, stream: Any, *values: Any) -> Any:
            attempt = kernel.__dict__.pop(_LAUNCH, None)
            if attempt:
                with self._guard:
                    attempt.launched(grid, values)
            return original(kernel, grid, stream, *values)

        return launch_metadata

    def tool_ran(self, arguments: Any, log: Any) -> None:
        """Record a tool that a backend ran, and what it said."""
        attempt = self._attempt
        if attempt and attempt.begun and hasattr(log, "name"):
            with self._guard:
                attempt.command(arguments, log)


class _Subprocess:
    """``subprocess`` as a backend's module sees it: what it runs is recorded."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def run(self, arguments: Any, *args: Any, **options: Any) -> Any:
        """Run a command as ``subprocess.run`` does."""
        try:
            return subprocess.run(arguments, *args, **options)
        finally:
            self._recorder.tool_ran(arguments, options.get("stderr"))


def _wrap(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, make(original))


def _globals(backend: type) -> dict[str, Any]:
    """Return the names of a backend's module, which older versions of Triton do not register as one."""
    names: dict[str, Any] = getattr(inspect.unwrap(backend.add_stages), "__globals__", {})  # type: ignore[attr-defined]
    return names


def _innermost(tuner: Any) -> Any:
    while hasattr(tuner, "configs") or hasattr(tuner, "values"):
        tuner = tuner.fn
    return tuner


def _functions(kind: type, compile_: Any) -> list[Any]:
    """Return the functions that were launched before, and hold ``triton.compile`` by themselves."""
    found = [item for item in gc.get_objects() if issubclass(type(item), kind)]
    return [item for item in found if item.__dict__.get("compile") is compile_]
