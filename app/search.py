"""Search through the texts of a trace, bounded in time, bytes and hits.

Words are searched here. A regular expression runs in a child process that is killed when its time is up, since
Python's ``re`` can neither be interrupted nor trusted with a stranger's pattern.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from app.errors import ApiError
from pipelines.trace import Manifest, Snapshot

MAX_QUERY = 500
MAX_HITS = 500
MAX_BYTES = 512 << 20
MAX_LINE = 400
SECONDS = 3.0

# How the child ends where the expression cannot be compiled.
MALFORMED = 3
CHILD = Path(__file__).with_name("search_child.py")

_children = threading.BoundedSemaphore(2)


class Hit(NamedTuple):
    """A line, counted from 1, of the first address that shows this text."""

    address: str
    line: int
    text: str


@dataclass(frozen=True)
class Found:
    """Hits in the order of the pipeline; ``truncated`` where a bound cut them off."""

    hits: tuple[Hit, ...]
    truncated: bool


def shown_texts(manifest: Manifest, text: Callable[[Snapshot], bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield each distinct text, as ``text`` shows it, with its first address."""
    artifacts = [manifest.resolve(artifact.name) for artifact in manifest.artifacts if not artifact.binary]
    seen: set[str] = set()
    for snapshot in (*manifest.sources(), *manifest.snapshots(), *artifacts):
        if snapshot.text not in seen:
            seen.add(snapshot.text)
            yield snapshot.address, text(snapshot)


class Budget:
    """What one search may still spend; ``spent`` says that it ran out."""

    def __init__(self) -> None:
        self._deadline = time.monotonic() + SECONDS
        self._bytes = MAX_BYTES
        self.spent = False

    @property
    def seconds(self) -> float:
        """Seconds left."""
        return self._deadline - time.monotonic()

    def within(self, texts: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """Yield texts until time or bytes run out."""
        for address, text in texts:
            self._bytes -= len(text)
            if self._bytes < 0 or self.seconds < 0:
                self.spent = True
                return
            yield address, text


def words(texts: Iterable[tuple[str, bytes]], query: str) -> Found:
    """Find lines that contain the query; ASCII letter case counts only where the query has capitals."""
    needle = query.encode()
    fold = needle == needle.lower()
    budget = Budget()
    hits: list[Hit] = []
    for address, text in budget.within(texts):
        for line, shown in _lines(text, needle, fold):
            if len(hits) == MAX_HITS:
                return Found(tuple(hits), truncated=True)
            hits.append(Hit(address, line, shown))
    return Found(tuple(hits), budget.spent)


def _lines(text: bytes, needle: bytes, fold: bool) -> Iterator[tuple[int, str]]:
    haystack = text.lower() if fold else text
    line, counted, at = 1, 0, haystack.find(needle)
    while at >= 0:
        line += text.count(b"\n", counted, at)
        start = text.rfind(b"\n", 0, at) + 1
        end = text.find(b"\n", at)
        end = len(text) if end < 0 else end
        yield line, text[start : min(end, start + MAX_LINE)].decode("utf-8", errors="replace")
        counted, at = at, haystack.find(needle, end)


def expression(texts: Iterable[tuple[str, bytes]], query: str) -> Found:
    """Find lines that match a regular expression, in Python's syntax.

    Raises:
        ApiError: the expression is malformed (422), or too many such searches run (429).
    """
    if not _children.acquire(timeout=SECONDS):
        raise ApiError(429, "Other searches are running. Try again in a moment.")
    try:
        return _in_child(texts, query)
    finally:
        _children.release()


def _in_child(texts: Iterable[tuple[str, bytes]], query: str) -> Found:
    budget = Budget()
    addresses: list[str] = []
    sizes: list[str] = []
    with tempfile.TemporaryFile() as file:
        for address, text in budget.within(texts):
            addresses.append(address)
            sizes.append(str(len(text)))
            file.write(text)
        file.flush()
        command = [sys.executable, "-I", "-S", "-W", "ignore", str(CHILD)]
        command += [json.dumps(query), str(MAX_HITS), str(MAX_LINE), ",".join(sizes)]
        child = subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, env={})
        try:
            out, _ = child.communicate(timeout=max(0.2, budget.seconds))
        except subprocess.TimeoutExpired:
            child.kill()
            out, _ = child.communicate()
            budget.spent = True
    rows = [json.loads(row) for row in out.split(b"\n")[:-1]]
    if child.returncode == MALFORMED:
        raise ApiError(422, f"q: not a regular expression: {rows[0]}", detail={"in": "query", "field": "q"})
    hits = tuple(Hit(addresses[index], line, shown) for index, line, shown in rows[:MAX_HITS])
    # Out of memory, killed, or killed here: whatever its end was, it did not get through.
    return Found(hits, budget.spent or child.returncode != 0 or len(rows) > MAX_HITS)
