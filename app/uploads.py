"""Uploaded trace files: bounded while they arrive, verified, and stored by what they contain."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

from flask import request
from pydantic import JsonValue
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.config import MAX_UPLOAD_BYTES, MAX_UPLOAD_MANIFEST
from app.errors import ApiError
from app.ids import PERMALINK
from app.models import Group, Trace
from app.services import Services
from pipelines.trace import Manifest, TraceError
from pipelines.tracefile import TraceFile

CHUNK = 1 << 20
MAX_GROUP = 200
# What an upload asks for to begin a group, and the request of one that was begun so.
NEW_GROUP = "new"
UPLOADED = {"uploaded": True}
AT_GROUP: JsonValue = {"in": "query", "field": "group"}

# An upload takes its size in memory while it is verified.
_verifying = threading.BoundedSemaphore(2)


def receive(services: Services, group: str | None = None) -> Trace:
    """Store the current request's body as a new trace, in a group that an upload began where one is named.

    Raises:
        ApiError: too large (413), not a sound trace file or no such group (422), a group that takes no more (409), or
            too many uploads at once (429).
    """
    if request.mimetype in ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"):
        raise ApiError(415, "Send the file as the body, with Content-Type: application/octet-stream.")
    request.max_content_length = MAX_UPLOAD_BYTES
    if group and group != NEW_GROUP:
        with services.database.read() as session:
            _next(session, group)  # told before the body is read
    if not _verifying.acquire(timeout=10):
        raise ApiError(429, "Other uploads are being checked. Try again in a moment.")
    try:
        with tempfile.NamedTemporaryFile(dir=services.settings.uploads, prefix="upload-", delete=False) as file:
            path = Path(file.name)
            while chunk := request.stream.read(CHUNK):
                file.write(chunk)
        return store(services, path, group)
    finally:
        _verifying.release()
        path.unlink(missing_ok=True)


def store(services: Services, path: Path, group: str | None = None) -> Trace:
    """Verify a file and give it a permalink; the file is moved into the store or left where it is."""
    try:
        trace_file = TraceFile.open(path)
        if trace_file.head_size > MAX_UPLOAD_MANIFEST:
            words = f"The trace's manifest is {trace_file.head_size >> 20} MB of JSON; an upload may have"
            raise ApiError(413, f"{words} {MAX_UPLOAD_MANIFEST >> 20} MB.")
        trace_file.verify()
    except TraceError as error:
        raise ApiError(422, f"The file is not a sound trace: {error}") from None
    manifest, content = trace_file.manifest, trace_file.content
    services.blobs.adopt(content, path)
    with services.database.write() as session:
        if group == NEW_GROUP:
            begun = Group(request=dict(UPLOADED))
            session.add(begun)
            session.flush()
            group = begun.id
        trace = imported_trace(manifest, content, group, _next(session, group) if group else 0)
        session.add(trace)
    return trace


def imported_trace(manifest: Manifest, content: str, group: str | None, variant: int) -> Trace:
    """Return the row of a trace that was not made here: without a compile key it never answers for a compilation."""
    return Trace(
        group_id=group,
        variant=variant,
        status=manifest.status,
        kernel=manifest.kernel.name,
        target=manifest.target.arch,
        config=manifest.launch.config if manifest.launch else None,
        content=content,
        finished=time.time(),
    )


def _next(session: Session, group: str) -> int:
    """Return the number of a group's next trace; raise ApiError where it takes none."""
    row = session.get(Group, group) if PERMALINK.fullmatch(group) else None
    if row is None:
        raise ApiError(422, f"There is no group {group[:64]!r} on this server.", detail=AT_GROUP)
    if row.request != UPLOADED:
        raise ApiError(409, "This group was made by a compilation; begin one for uploads with group=new.")
    count = select(func.count()).select_from(Trace).where(Trace.group_id == group)
    taken = session.execute(count).scalar_one()
    if taken >= MAX_GROUP:
        raise ApiError(409, f"This group has {MAX_GROUP} traces and takes no more; make another.")
    return taken
