"""What every pass did, in numbers: what the pass list and the strip over the pipeline show."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from pydantic import Field

from pipelines.analysis.diff import Diff, Lines, align
from pipelines.analysis.mask import count_lines
from pipelines.analysis.operations import count_dialects
from pipelines.analysis.spans import Keys
from pipelines.dumps.sass import strip_encodings
from pipelines.trace import Manifest, Model, Snapshot, Syntax, artifact_syntax, predecessors

# The bytes of text that one summary aligns; an honest trace of 35 snapshots of 5 MB needs a fifth.
MAX_ALIGNED = 2 << 30

_KEPT_TEXTS = 4


class Row(Model):
    """One address. ``bytes`` is UTF-8; the counts are lines against ``against``.

    ``changed`` is False where the text is equal or only names, locations and indentation differ. ``fallback`` says that
    the texts were too long to be aligned in full: the counts are too high or missing. ``dialects`` counts operations,
    the most used first.
    """

    lines: int
    bytes: int
    against: str | None = None
    changed: bool = False
    plus: int = 0
    minus: int = 0
    renamed: int = 0
    fallback: bool = False
    dialects: dict[str, int] = Field(default_factory=dict)


class Summary(Model):
    """Rows by address, in the order of the pipeline, then the artifacts that are texts."""

    rows: dict[str, Row]


Blob = Callable[[str], bytes]
KeysOf = Callable[[str, bytes, Syntax], Keys]
AlignOf = Callable[[str, str, Lines, Lines], Diff]


def summarize(manifest: Manifest, blob: Blob, keys_of: KeysOf, align_of: AlignOf | None = None) -> Summary:
    """Compare every pass with the snapshot it received.

    ``blob`` returns a text by its digest. ``keys_of`` returns ``mask.line_keys`` of a digest, its text and syntax, and
    is where a caller keeps them; ``align_of`` likewise for two digests and their lines. Equal texts and equal pairs are
    computed once.
    """
    worker = _Worker(blob, keys_of, align_of or (lambda _, __, a, b: align(a, b)))
    rows: dict[str, Row] = {}
    received = predecessors(manifest)
    for snapshot in manifest.snapshots():
        row = worker.measure(snapshot.text, snapshot.syntax)
        against = received.get(snapshot.address)
        if against is not None:
            row = worker.compare(row, manifest.resolve(against), snapshot)
        rows[snapshot.address] = row
    for artifact in manifest.artifacts:
        if not artifact.binary:
            rows[artifact.name] = worker.measure(artifact.digest, artifact_syntax(artifact))
    return Summary(rows=rows)


class _Worker:
    """Computes each text and each pair once, and holds few texts at a time."""

    def __init__(self, blob: Blob, keys_of: KeysOf, align_of: AlignOf) -> None:
        self._blob = lru_cache(_KEPT_TEXTS)(blob)
        self._keys_of = keys_of
        self._align_of = align_of
        self._lines = lru_cache(_KEPT_TEXTS)(self._read)
        self._measured: dict[tuple[str, Syntax], Row] = {}
        self._compared: dict[tuple[str, str], dict[str, int | bool]] = {}
        self._aligned = 0

    def measure(self, digest: str, syntax: Syntax) -> Row:
        """Return a row without a comparison; SASS counts as it is shown, without raw encodings."""
        row = self._measured.get((digest, syntax))
        if row is None:
            text = self._blob(digest)
            text = strip_encodings(text) if syntax == "sass" else text
            dialects = count_dialects(text) if syntax == "mlir" else {}
            row = Row(lines=count_lines(text), bytes=len(text), dialects=dialects)
            self._measured[digest, syntax] = row
        return row

    def compare(self, row: Row, before: Snapshot, after: Snapshot) -> Row:
        """Return the row with what changed against an earlier snapshot."""
        told = {"against": before.address}
        if before.text == after.text:
            return row.model_copy(update=told)
        pair = before.text, after.text
        if pair not in self._compared:
            self._compared[pair] = self._align(before, after)
        return row.model_copy(update={**told, **self._compared[pair]})

    def _align(self, before: Snapshot, after: Snapshot) -> dict[str, int | bool]:
        if before.syntax != after.syntax:  # two languages have no lines in common
            return {"changed": True, "fallback": True}
        a, b = self._lines(before.text, before.syntax), self._lines(after.text, after.syntax)
        self._aligned += len(a.text) + len(b.text)
        if self._aligned > MAX_ALIGNED:
            return {"changed": True, "fallback": True}
        diff = self._align_of(before.text, after.text, a, b)
        return {
            "changed": diff.plus > 0 or diff.minus > 0,
            "plus": diff.plus,
            "minus": diff.minus,
            "renamed": diff.renamed,
            "fallback": diff.fallback,
        }

    def _read(self, digest: str, syntax: Syntax) -> Lines:
        text = self._blob(digest)
        return Lines(text, syntax, self._keys_of(digest, text, syntax))
