"""A folder that a compilation's files go to as soon as they are known, so that a later abort loses nothing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

EVENTS = "events.jsonl"
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
