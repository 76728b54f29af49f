"""The slot's directory as it was at entry: results go there, wherever the source has moved to since."""

from __future__ import annotations

from pathlib import Path

from pipelines.hook import folder

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
    folder.write_output(_entered, name, data)


class EventLog(folder.EventLog):
    """The slot's events."""

    def __init__(self) -> None:
        super().__init__(_entered)
