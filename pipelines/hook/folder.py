"""A folder that a compilation's files go to as soon as they are known, so that a later abort loses nothing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

EVENTS = "events.jsonl"
# What each of Triton's stages gives, by the stage's extension.
OUTPUTS = {
    "ttir": "ttir.out",
    "ttgir": "ttgir.out",
    "llir": "llvm-ir.out",
    "ptx": "ptx.out",
    "cubin": "cubin.out",
    "amdgcn": "amdgcn.out",
    "hsaco": "hsaco.out",
}
UNFINISHED = {"ttir": "ttir.out", "ttgir": "ttgir.out", "llvm-dialect": "llvm-dialect.out"}
PTXAS_LOG = "ptxas-log.out"
DUMP = "dump.mlir"
GLUON_INPUT = "glir"  # what the front end gives, handed on as it is
# The symbol of a module that is printed into the dump only to push out what is buffered before it.
FLUSH_SYMBOL = "loupe_flush"


def write_output(directory: Path, name: str, data: str | bytes) -> None:
    """Write a file in one go, complete under its final name or not there at all."""
    partial = directory / f"{name}.part"
    partial.write_bytes(data if isinstance(data, bytes) else data.encode())
    partial.replace(directory / name)


class EventLog:
    """Appends one JSON line an event to ``events.jsonl``, unbuffered."""

    def __init__(self, directory: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(directory / EVENTS, flags, 0o600)

    def write(self, event: str, **data: Any) -> None:
        """Add an event with the monotonic clock's seconds."""
        line = json.dumps({"event": event, "at": time.monotonic(), **data})
        os.write(self._file, line.encode() + b"\n")

    def close(self) -> None:
        """Give the file's descriptor back."""
        os.close(self._file)


def shown_command(arguments: Any) -> list[str]:
    """Name a command as a user would type it: no path of this machine, ``kernel.ptx`` in, ``kernel.cubin`` out."""
    program, *rest = map(str, arguments)
    shown = [Path(program).name]
    for before, argument in zip([program, *rest], rest):  # noqa: B905 - the last has nothing after it
        name = Path(argument).name
        if before == "-o":
            shown.append("kernel.cubin")
        elif name.startswith("tmp") and name.endswith(".ptx"):
            shown.append("kernel.ptx")
        else:
            shown.append(argument)
    return shown
