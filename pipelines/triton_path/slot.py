"""The slot's directory as it was at entry: results go there, wherever the source has moved to since."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

EVENTS = "events.jsonl"
# The symbol of a module that is printed into the dump only to push out what is buffered before it.
FLUSH_SYMBOL = "loupe_flush"

_entered = Path()


def enter() -> None:
    """Take the working directory for the slot's; called first in every child."""
    global _entered
    _entered = Path.cwd()


def directory() -> Path:
    """Return the slot's absolute path; it stays out of everything that is written."""
    return _entered


def write_output(name: str, data: str | bytes) -> None:
    """Write a file in one go, complete under its final name or not there at all."""
    partial = _entered / f"{name}.part"
    partial.write_bytes(data if isinstance(data, bytes) else data.encode())
    partial.replace(_entered / name)


class EventLog:
    """Appends one JSON line an event, unbuffered."""

    def __init__(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(_entered / EVENTS, flags, 0o600)

    def write(self, event: str, **data: Any) -> None:
        """Add an event with the monotonic clock's seconds."""
        line = json.dumps({"event": event, "at": time.monotonic(), **data})
        os.write(self._file, line.encode() + b"\n")
