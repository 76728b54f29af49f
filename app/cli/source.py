"""Where a TRACE on the command line comes from: a file, a permalink of this home, or a permalink of a server."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import click

from app.config import MAX_UPLOAD_BYTES, Settings
from app.ids import PERMALINK
from pipelines.addedfile import ExtendedTrace
from pipelines.addenda import LlvmPasses
from pipelines.dumps.sass import strip_encodings
from pipelines.trace import Snapshot, TraceError
from pipelines.tracefile import TraceFile

TIMEOUT_SECONDS = 60


def open_trace(name: str, settings: Settings, *, extended: bool = False) -> TraceFile:
    """Open a trace by its file, its id or its URL; raise click.ClickException saying why it cannot be.

    ``extended`` takes LLVM's passes with it, where the trace is of this home and has them.
    """
    try:
        if name.startswith(("http://", "https://")):
            file = TraceFile(_download(name))
        elif Path(name).is_file():
            file = TraceFile.open(Path(name))
        else:
            file = _from_home(name.removeprefix("/t/"), settings, extended)
        file.verify()
    except TraceError as error:
        raise click.ClickException(f"{name}: {error}") from None
    return file


def shown_text(file: TraceFile, snapshot: Snapshot) -> bytes:
    """Return a text as it is shown: SASS without encodings."""
    text = file.blob(snapshot.text)
    return strip_encodings(text) if snapshot.syntax == "sass" else text


def _download(url: str) -> bytes:
    parts = urlsplit(url)
    trace = parts.path.rstrip("/").rpartition("/")[2]
    if not PERMALINK.fullmatch(trace):
        raise click.ClickException(f"{url} is no permalink; one ends in /t/ and 22 characters")
    file = f"{parts.scheme}://{parts.netloc}/api/v1/traces/{trace}/file"
    try:
        with urllib.request.urlopen(file, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - the scheme is checked
            data: bytes = response.read(MAX_UPLOAD_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise click.ClickException(f"{file} answered {error.code}: {error_message(error)}") from None
    except OSError as error:
        raise click.ClickException(f"{file} cannot be reached: {error}") from None
    if len(data) > MAX_UPLOAD_BYTES:
        raise click.ClickException(f"{file} is larger than {MAX_UPLOAD_BYTES >> 20} MB")
    return data


def error_message(error: urllib.error.HTTPError) -> str:
    """Return what a Loupe server said was wrong, or its status in words."""
    from pydantic import ValidationError

    from app.openapi import ErrorReply

    try:
        return ErrorReply.model_validate_json(error.read(100_000)).error.message
    except (ValidationError, OSError):
        return error.reason


def _from_home(trace_id: str, settings: Settings, extended: bool) -> TraceFile:
    from app.added import latest
    from app.blobs import AddedStore, BlobStore
    from app.database import look
    from app.models import Trace

    if not PERMALINK.fullmatch(trace_id) or not settings.database.exists():
        raise click.ClickException(f"{trace_id}: there is no such file, and no such trace in {settings.home}")
    with look(settings.database) as session:
        trace = session.get(Trace, trace_id)
        addendum = latest(session, trace.content or "", "llvm-passes") if trace and extended else None
    if trace is None:
        raise click.ClickException(f"{trace_id}: there is no such file, and no such trace in {settings.home}")
    if trace.content is None:
        raise click.ClickException(f"{trace_id} has no IR: it is {trace.status}")
    file = BlobStore(settings.blobs).open(trace.content)
    if isinstance(addendum, LlvmPasses):
        return ExtendedTrace(file, AddedStore(settings.added).open(addendum.file))
    return file
