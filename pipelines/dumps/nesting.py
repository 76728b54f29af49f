"""Which passes a pass manager ran itself, and which ran inside another pass.

The dump is one flat list. What the pass manager was given is known from its pipeline string, so a pass in the dump
that is not in the string ran inside the one before it: the inliner's canonicalizers, the pipeliner's steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.dumps.mlir import Header, pass_name

# A compiler's own pipelines have some 50 passes in some 8 KB.
MAX_PIPELINE = 1 << 20
MAX_PLANNED = 2_000


_MARKS = re.compile(r"[(){}<>,]")


@dataclass(frozen=True)
class Planned:
    """A pass in a pipeline string, or those nested on one ``anchor``, which run in turn on each such operation.

    ``anchor`` is empty for the pipeline's root operation.
    """

    names: frozenset[str]
    anchor: str


@dataclass(frozen=True)
class Place:
    """Where a pass of the dump belongs: its pipeline's index, and the dump index of its parent."""

    run: int
    parent: int | None


def parse_pipeline(text: str) -> list[Planned]:
    """Read ``any(inline{default-pipeline=canonicalize},llvm.func(canonicalize-llvm-ir))`` into its passes.

    Commas and parentheses inside ``{...}`` and ``<...>`` belong to options and class names.
    A malformed text gives what could be read of it, and so does one beyond ``MAX_PIPELINE`` characters or
    ``MAX_PLANNED`` passes.
    """
    passes: list[tuple[str, set[str]]] = []
    for name, anchor in _walk(text):
        if anchor and passes and passes[-1][0] == anchor:
            passes[-1][1].add(name)
        else:
            passes.append((anchor, {name}))
    return [Planned(frozenset(names), anchor) for anchor, names in passes]


def parse_names(text: str) -> list[tuple[str, str]]:
    """Read the same into name and anchor of each pass that was added, in their order."""
    return list(_walk(text))


def _walk(text: str) -> Iterator[tuple[str, str]]:
    """Yield each pass's name and the nested operation that it runs on, empty for the root."""
    anchors: list[str] = []
    start = named = depth = 0
    text = text[:MAX_PIPELINE]
    for mark in _MARKS.finditer(text):
        char, at = mark[0], mark.start()
        if char in "{<":
            depth += 1
        elif char in "}>":
            depth -= depth > 0
        if depth or char in "{<}>":
            continue
        word, start = text[start:at], at + 1
        if char == "(":
            anchors.append(word.strip())
            continue
        if name := pass_name(word):
            named += 1
            yield name, anchors[-1] if len(anchors) > 1 else ""
        if char == ")" and anchors:
            anchors.pop()
        if named == MAX_PLANNED:
            return
    if name := pass_name(text[start:]):
        yield name, anchors[-1] if len(anchors) > 1 else ""


def place(headers: Sequence[Header], runs: Sequence[Sequence[Planned]]) -> list[Place]:
    """Say for each pass of a dump to which run it belongs and inside which pass it ran.

    ``headers`` are those of passes in the order they began, without failures and steps. Every planned pass is
    found as late as possible, so that of two equal neighbours the first is the inner one; a run that was cut off
    by a failure is matched as far as it came.
    """
    plan = [(run, item) for run, items in enumerate(runs) for item in items]
    nested = {item.anchor for _, item in plan}
    root = next((header.anchor for header in headers if header.anchor not in nested), "")
    reached = _reached(headers, plan, root)
    own: dict[int, int] = {}
    at = len(headers) - 1
    for run, item in reversed(plan[:reached]):
        while at >= 0 and not _is(headers[at], item, root):
            at -= 1
        while item.anchor and at >= 0 and _is(headers[at], item, root):
            own[at] = run
            at -= 1
        if not item.anchor and at >= 0:
            own[at] = run
            at -= 1
    places: list[Place] = []
    parent: int | None = None
    run = 0
    for index in range(len(headers)):
        if index in own:
            parent, run = index, own[index]
            places.append(Place(run, None))
        else:
            places.append(Place(run, parent))
    return places


def _reached(headers: Sequence[Header], plan: Sequence[tuple[int, Planned]], root: str) -> int:
    at = reached = 0
    for reached, (_, item) in enumerate(plan):
        while at < len(headers) and not _is(headers[at], item, root):
            at += 1
        if at == len(headers):
            return reached
        while item.anchor and at + 1 < len(headers) and _is(headers[at + 1], item, root):
            at += 1
        at += 1
    return reached + 1 if plan else 0


def _is(header: Header, item: Planned, root: str) -> bool:
    return header.name in item.names and header.anchor in ("", item.anchor or root)
