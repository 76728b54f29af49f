"""Uploaded trace files: bounded while they arrive, verified, and stored by what they contain."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

from flask import request

from app.config import MAX_UPLOAD_BYTES, MAX_UPLOAD_MANIFEST
from app.errors import ApiError
from app.models import Trace
from app.services import Services
from pipelines.trace import TraceError
from pipelines.tracefile import TraceFile

CHUNK = 1 << 20

# An upload takes its size in memory while it is verified.
_verifying = threading.BoundedSemaphore(2)


def receive(services: Services) -> Trace:
    """Store the current request's body as a new trace.

    Raises:
        ApiError: too large (413), not a sound trace file (422), or too many uploads at once (429).
    """
    if request.mimetype in ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"):
        raise ApiError(415, "Send the file as the body, with Content-Type: application/octet-stream.")
    request.max_content_length = MAX_UPLOAD_BYTES
    if not _verifying.acquire(timeout=10):
        raise ApiError(429, "Other uploads are being checked. Try again in a moment.")
    try:
        with tempfile.NamedTemporaryFile(dir=services.settings.uploads, prefix="upload-", delete=False) as file:
            path = Path(file.name)
            while chunk := request.stream.read(CHUNK):
                file.write(chunk)
        return store(services, path)
    finally:
        _verifying.release()
        path.unlink(missing_ok=True)


def store(services: Services, path: Path) -> Trace:
    """Verify a file and give it a permalink; the file is moved into the store or left where it is."""
    try:
        trace_file = TraceFile.open(path)
        if trace_file.manifest_size > MAX_UPLOAD_MANIFEST:
            words = f"The trace's manifest is {trace_file.manifest_size >> 20} MB of JSON; an upload may have"
            raise ApiError(413, f"{words} {MAX_UPLOAD_MANIFEST >> 20} MB.")
        trace_file.verify()
    except TraceError as error:
        raise ApiError(422, f"The file is not a sound trace: {error}") from None
    manifest, content = trace_file.manifest, trace_file.content
    services.blobs.adopt(content, path)
    now = time.time()
    trace = Trace(
        group_id=None,
        status=manifest.status,
        kernel=manifest.kernel.name,
        target=manifest.target.arch,
        config=manifest.launch.config if manifest.launch else None,
        content=content,
        finished=now,
    )
    with services.database.write() as session:
        session.add(trace)
    return trace
