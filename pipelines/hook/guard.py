"""Keep this package's own errors out of the program that it records, and tell of each kind once."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType

DEBUG = "LOUPE_RECORD_DEBUG"


class Guard:
    """A context that ends every ``Exception`` inside it; interrupts and exits pass."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, message: str) -> None:
        """Print a message on standard error, once a process."""
        if message in self._told:
            return
        self._told.add(message)
        try:
            print(f"loupe: {message}", file=sys.stderr, flush=True)
        except (OSError, ValueError, AttributeError):  # standard error may be closed, or None
            return

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Tell of an error and go on."""
        if error is None or not isinstance(error, Exception):
            return False
        if os.environ.get(DEBUG):
            traceback.print_exception(kind, error, trace)
        try:
            words = f"{type(error).__name__}: {error}"
        except Exception:  # an error whose text cannot be made
            words = type(error).__name__
        self.tell(f"a kernel is recorded in part or not at all; the program goes on: {words[:500]}")
        return True
