"""What is computed from stored traces, kept by text hash or content: line keys, diffs and summaries."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pipelines
from app.blobs import AddedStore, BlobStore, DamagedError
from app.cache import DiskCache, KeyedLocks, MemoryCache
from pipelines.addedfile import ExtendedTrace
from pipelines.analysis.diff import Diff, Lines, Op, align
from pipelines.analysis.mask import count_lines, line_keys
from pipelines.analysis.summary import Row, Summary, summarize
from pipelines.dumps.sass import strip_encodings
from pipelines.trace import Manifest, Snapshot, Syntax, TraceError, artifact_syntax
from pipelines.tracefile import TraceFile

TEXT_BYTES = 128 << 20
KEY_BYTES = 64 << 20
# The texts of a trace that a request summarizes; some seconds' work. The largest gallery kernel has a quarter.
REQUEST_BYTES = 512 << 20

Keys = NDArray[np.uint64]


class Analyses:
    """Computes on first use; results are shared by all processes through the disk cache.

    Whatever reads a text raises DamagedError where the stored file is damaged.
    """

    def __init__(self, blobs: BlobStore, added: AddedStore, cache: DiskCache) -> None:
        self._blobs = blobs
        self._added = added
        self._cache = cache
        self._texts: MemoryCache[bytes] = MemoryCache(TEXT_BYTES)
        self._keys: MemoryCache[Keys] = MemoryCache(KEY_BYTES)
        # One at a time for each content: many requests for one large trace should not each compute it.
        self._summarizing = KeyedLocks()

    def text(self, trace: TraceFile, name: str, syntax: Syntax, *, raw: bool = False) -> bytes:
        """Return a text as it is shown: SASS without encodings unless ``raw``."""
        strip = syntax == "sass" and not raw
        key = f"{name}:{strip}"
        text = self._texts.get(key)
        if text is None:
            text = self._read(trace, name)
            if strip:
                text = strip_encodings(text)
            self._texts.put(key, text, len(text))
        return text

    def _read(self, trace: TraceFile, name: str) -> bytes:
        try:
            return trace.blob(name)
        except TraceError as error:
            self._blobs.forget(trace.content)
            raise DamagedError(trace.content, f"is damaged: {error}") from None

    def keys(self, name: str, text: bytes, syntax: Syntax) -> Keys:
        """Return the line keys of a shown text."""
        key = f"{name}:{syntax}:{revision()}"
        keys = self._keys.get(key)
        if keys is None:
            stored = self._cache.get("keys", key)
            if stored is not None:
                keys = np.frombuffer(stored, dtype=np.uint64)
            else:
                keys = line_keys(text, syntax)
                self._cache.put("keys", key, keys.tobytes())
            self._keys.put(key, keys, keys.nbytes)
        return keys

    def diff(self, trace: TraceFile, before: Snapshot, after: Snapshot) -> Diff:
        """Align two texts of a trace, as they are shown."""
        key = f"{before.text}:{before.syntax}:{after.text}:{after.syntax}:{revision()}"
        stored = self._cache.get("diff", key)
        if stored is not None:
            ops, *counts = json.loads(stored)
            return Diff([Op(*op) for op in ops], *counts)
        return self._align(key, self.lines(trace, before), self.lines(trace, after))

    def _align(self, key: str, a: Lines, b: Lines) -> Diff:
        diff = align(a, b)
        self._cache.put("diff", key, json.dumps(diff).encode())
        return diff

    def lines(self, trace: TraceFile, snapshot: Snapshot) -> Lines:
        """Return a text with its keys."""
        text = self.text(trace, snapshot.text, snapshot.syntax)
        return Lines(text, snapshot.syntax, self.keys(snapshot.text, text, snapshot.syntax))

    def summary_on_request(self, content: str) -> Summary | None:
        """Return the summary; None where computing it would hold up a request for too long."""
        kept = self.kept_summary(content)
        if kept is None and self._blobs.open(content).text_size > REQUEST_BYTES:
            return None
        return kept or self.summary(content)

    def summary(self, content: str) -> Summary:
        """Return what every pass of a stored trace changed."""
        kept = self.kept_summary(content)
        if kept is not None:
            return kept
        with self._summarizing.hold(content):
            kept = self.kept_summary(content)
            if kept is None:
                kept = self._keep_summary(content, self._summarize(content))
            return kept

    def added_summary_on_request(self, content: str, file: str) -> Summary | None:
        """Return what LLVM's passes of a file changed; None where computing it would take a request too long."""
        kept = self.kept_summary(file)
        if kept is None and self._added.open(file).text_size > REQUEST_BYTES:
            return None
        return kept or self.added_summary(content, file)

    def added_summary(self, content: str, file: str) -> Summary:
        """Return what LLVM's passes of a file, which were added to a trace, changed."""
        with self._summarizing.hold(file):
            kept = self.kept_summary(file)
            if kept is not None:
                return kept
            trace = ExtendedTrace(self._blobs.open(content), self._added.open(file))
            stages = self._added.open(file).added.stages
            manifest = trace.manifest.model_copy(update={"stages": stages, "artifacts": ()})
            return self._keep_summary(file, self._measure(trace, manifest))

    def _summarize(self, content: str) -> Summary:
        trace = self._blobs.open(content)
        return self._measure(trace, trace.manifest)

    def _measure(self, trace: TraceFile, manifest: Manifest) -> Summary:
        sass = manifest.artifact("sass")

        def shown(name: str) -> bytes:
            return self.text(trace, name, "sass" if sass and name == sass.digest else "text")

        def aligned(before: str, after: str, a: Lines, b: Lines) -> Diff:
            return self._align(f"{before}:{a.syntax}:{after}:{b.syntax}:{revision()}", a, b)

        return summarize(manifest, shown, self.keys, aligned)

    def kept_summary(self, content: str) -> Summary | None:
        """Return a summary that was computed before, or None."""
        stored = self._cache.get("summary", _summary_key(content))
        return Summary.model_validate_json(stored) if stored is not None else None

    def extend_summary(self, interim: str, content: str) -> None:
        """Make a finished trace's summary from that of its interim trace, where that one is kept.

        Their passes are the same; only the artifacts that came later are measured.
        """
        kept = self.kept_summary(interim)
        if kept is None:
            return
        trace = self._blobs.open(content)
        rows = dict(kept.rows)
        for artifact in trace.manifest.artifacts:
            if not artifact.binary and artifact.name not in rows:
                text = self.text(trace, artifact.digest, artifact_syntax(artifact))
                rows[artifact.name] = Row(lines=count_lines(text), bytes=len(text))
        self._keep_summary(content, Summary(rows=rows))

    def _keep_summary(self, content: str, summary: Summary) -> Summary:
        self._cache.put("summary", _summary_key(content), summary.model_dump_json().encode())
        return summary


def _summary_key(content: str) -> str:
    return f"{content}:{revision()}"


@functools.cache
def revision() -> str:
    """Return a hash of the code whose results are cached, so that none outlives a change of it."""
    root = Path(pipelines.__file__).parent
    total = hashlib.sha256()
    for path in sorted([*root.glob("analysis/*.py"), *root.glob("dumps/*.py")]):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]
