"""Files that nothing names any more: traces shown before SASS was there, LLVM's passes whose row was never written."""

from __future__ import annotations

import contextlib
import time

from app import jobs
from app.added import named_files
from app.services import Services

# Longer than any request or compilation that holds a file before its row is written.
GRACE_SECONDS = 3600.0


def remove(services: Services) -> int:
    """Delete what nothing names since ``GRACE_SECONDS``; return how many files that were."""
    before = time.time() - GRACE_SECONDS

    def named() -> set[str]:
        with services.database.read() as session:
            return jobs.shown(session)

    def added() -> set[str]:
        with services.database.read() as session:
            return named_files(session)

    gone = services.blobs.sweep(named, older_than=before) + services.added.sweep(added, older_than=before)
    for path in services.settings.uploads.glob("upload-*"):
        with contextlib.suppress(FileNotFoundError):  # its request has just ended
            if path.stat().st_mtime < before:
                path.unlink()
                gone += 1
    return gone
