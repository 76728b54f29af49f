"""Hooks into one Triton compilation, inside the confined child: what ran, when, and what each stage gave.

Everything goes to files in the working directory as soon as it is known, so that a later abort loses nothing.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import triton
from triton import knobs
from triton._C.libtriton import ir, llvm
from triton.runtime.errors import PTXASError
from triton.runtime.jit import JITCallable, _triton_jit_function_registry, get_full_name

EVENTS = "events.jsonl"
OUTPUTS = {
    "ttir": "ttir.out",
    "ttgir": "ttgir.out",
    "llir": "llvm-ir.out",
    "ptx": "ptx.out",
    "cubin": "cubin.out",
}
DIALECT_OUTPUT = "llvm-dialect.out"
PTXAS_LOG = "ptxas-log.out"

TRITON_ROOT = str(Path(triton.__file__).parent)


class EventLog:
    """Appends one JSON line an event, unbuffered."""

    def __init__(self) -> None:
        self._file = os.open(EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, event: str, **data: Any) -> None:
        """Add an event with the monotonic clock's seconds."""
        line = json.dumps({"event": event, "at": time.monotonic(), **data})
        os.write(self._file, line.encode() + b"\n")


def virtual_path(name: str) -> str:
    """Return a file's name as it appears in IR: Triton's own under ``<triton>``, the rest as it is."""
    return "<triton>" + name[len(TRITON_ROOT) :] if name.startswith(TRITON_ROOT + os.sep) else name


def virtualize_locations() -> None:
    """Make locations and names in IR independent of where Triton is and of how the source is run."""
    for function in _triton_jit_function_registry.values():
        function.file_name = virtual_path(function.file_name)
    original = JITCallable.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.file_name = virtual_path(self.file_name)
        if self.__module__ == "__main__":
            self.__module__ = Path(self.file_name).stem
            self._fn_name = get_full_name(self)

    JITCallable.__init__ = init


class Instrument:
    """Installs the hooks; ``metadata`` is the compilation's own dictionary once a stage has run."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.metadata: dict[str, Any] = {}
        self.stage: str | None = None

    def install(self) -> None:
        """Hook the pass manager, the module handed to LLVM, and every stage."""
        knobs.runtime.add_stages_inspection_hook = self._inspect
        self._hook_pass_manager()
        self._hook_to_module()

    def _hook_pass_manager(self) -> None:
        run = ir.pass_manager.run

        def logged(manager: Any, module: Any, name: str) -> Any:
            self.log.write("pipeline", name=name, passes=manager.get_pipeline_str())
            return run(manager, module, name)

        ir.pass_manager.run = logged

    def _hook_to_module(self) -> None:
        to_module = llvm.to_module

        def saved(module: Any, context: Any) -> Any:
            write_output(DIALECT_OUTPUT, str(module))
            self.log.write("stage-end", stage="llvm-dialect")
            self.log.write("stage-begin", stage="llvm-ir")
            return to_module(module, context)

        llvm.to_module = saved

    def _inspect(self, *args: Any) -> tuple[str, str] | None:
        if not args:
            return "loupe", "loupe"
        _, stages, _, _, _ = args
        for extension, function in list(stages.items()):
            stages[extension] = self._stage(extension, function)
        return None

    def _stage(self, extension: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        first = {"llir": "llvm-dialect"}.get(extension, extension)
        last = {"llir": "llvm-ir"}.get(extension, extension)

        def run(source: Any, metadata: dict[str, Any]) -> Any:
            self.metadata, self.stage = metadata, first
            self.log.write("stage-begin", stage=first)
            with self._ptxas() if extension == "cubin" else contextlib.nullcontext():
                result = function(source, metadata)
            if extension in OUTPUTS:
                write_output(OUTPUTS[extension], result if isinstance(result, bytes) else str(result))
            self.log.write("stage-end", stage=last)
            return result

        return run

    @contextlib.contextmanager
    def _ptxas(self) -> Iterator[None]:
        """Keep what Triton prints of ptxas, else mixed with the user's own output, and the exact command."""
        printed, kept, start = io.StringIO(), sys.stdout, subprocess.run

        def logged(arguments: Any, **options: Any) -> Any:
            self.log.write("command", command=_command(arguments))
            return start(arguments, **options)

        sys.stdout = printed
        setattr(subprocess, "run", logged)  # noqa: B010 - mypy refuses to assign to an overloaded function
        try:
            yield
        except PTXASError as error:
            printed = io.StringIO(_ptxas_stderr(str(error)))
            raise
        finally:
            sys.stdout = kept
            setattr(subprocess, "run", start)  # noqa: B010 - as above
            write_output(PTXAS_LOG, printed.getvalue())


def _ptxas_stderr(message: str) -> str:
    """Return ptxas's own words out of Triton's error."""
    return message.partition("`ptxas` stderr:\n")[2].partition("\nRepro command:")[0] or message


def _command(arguments: Any) -> list[str]:
    """Name the command as a user would type it: no server path, the input called ``kernel.ptx``."""
    shown = [re.sub(r"\S*/tmp\w+\.ptx", "kernel.ptx", str(argument)) for argument in arguments]
    return [Path(shown[0]).name, *shown[1:]]


def write_output(name: str, data: str | bytes) -> None:
    """Write a file in one go, complete under its final name or not there at all."""
    partial = Path(name + ".part")
    partial.write_bytes(data if isinstance(data, bytes) else data.encode())
    partial.replace(name)
