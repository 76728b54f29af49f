"""Follows a running compilation by the files it writes, for progress only; the trace is built at the end."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from pipelines.dumps.mlir import Header, HeaderFollower
from pipelines.dumps.nesting import Planned, parse_pipeline
from pipelines.sandbox import Slot
from pipelines.trace import MAX_PASSES, MAX_STAGES
from pipelines.triton_path.output import MAX_DUMP, MAX_JSON
from pipelines.triton_path.spec import Event, LaunchFound
from pipelines.triton_path.stages import is_flush, stage_of_run

MAX_RUNS = 100
MAX_NAME = 512
ARTIFACTS = ("llvm-ir", "ptx", "cubin", "amdgcn", "hsaco")

_CHUNK = 8 << 20
_MAX_LINE = 2 << 20
_STAGE = re.compile(r"[a-z][a-z0-9-]{0,63}")


class Tail:
    """Reads what was appended to a slot's file since the last time, up to ``limit`` bytes in all."""

    def __init__(self, name: str, limit: int) -> None:
        self._name, self._limit = name, limit
        self._at = 0

    def read(self, slot: Slot) -> bytes:
        """Return the new bytes, none where the file is not there."""
        if self._at >= self._limit:
            return b""
        descriptor = slot.open(self._name)
        if descriptor is None:
            return b""
        try:
            data = os.pread(descriptor, min(_CHUNK, self._limit - self._at), self._at)
        finally:
            os.close(descriptor)
        self._at += len(data)
        return data


class Follower:
    """Turns new bytes of the event log and the dump into events.

    The child can forge both, so what is emitted and kept is bounded: each stage and artifact once, ``MAX_STAGES``
    stages, ``MAX_PASSES`` passes.
    """

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._events, self._dump = Tail("events.jsonl", MAX_JSON), Tail("dump.mlir", MAX_DUMP)
        self._rest = b""
        self._headers = HeaderFollower()
        self._runs: list[tuple[str, list[Planned]]] = []
        self._run = self._planned = 0
        self._ordinals: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._waiting: deque[Header] = deque()
        self._taken = 0
        self._told: set[tuple[str, str]] = set()
        self._launches_known = False

    @property
    def ptx_known(self) -> bool:
        """Whether PTX and all that led to it are in the slot's files."""
        return ("artifact", "ptx") in self._told

    def poll(self, slot: Slot) -> None:
        """Emit what is new; called every few milliseconds while the child runs, and once after it ended."""
        if not self._launches_known:
            self._read_launches(slot)
        for line in self._lines(self._events.read(slot)):
            self._event(line)
        if self._taken < MAX_PASSES:
            self._take(self._headers.feed(self._dump.read(slot)))
        while self._waiting and self._runs:
            self._header(self._waiting.popleft())

    def _lines(self, data: bytes) -> list[bytes]:
        """Return the lines that these bytes complete; one that does not end is dropped."""
        if b"\n" not in data:
            self._rest += data
            lines = []
        else:
            lines = (self._rest + data).split(b"\n")
            self._rest = lines.pop()
        if len(self._rest) > _MAX_LINE:
            self._rest = b""
        return lines

    def _take(self, headers: list[Header]) -> None:
        begun = [h for h in headers if h.when in ("before", "step") and not is_flush(h)][: MAX_PASSES - self._taken]
        self._waiting.extend(begun)
        self._taken += len(begun)

    def _read_launches(self, slot: Slot) -> None:
        data = slot.read("launches.json", MAX_JSON)
        if data is None:
            return
        self._launches_known = True
        try:
            launches = TypeAdapter(tuple[LaunchFound, ...]).validate_json(data)
        except (ValidationError, RecursionError):
            return
        self._emit(Event("launches", {"launches": [launch.model_dump(mode="json") for launch in launches]}))

    def _event(self, line: bytes) -> None:
        try:
            data = json.loads(line)
            kind, stage = data["event"], data.get("stage")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        if kind == "pipeline":
            self._pipeline(data.get("name"), data.get("passes"))
        elif not isinstance(stage, str) or not _STAGE.fullmatch(stage):
            return
        elif kind == "stage-begin":
            self._tell("stage", "stage", stage)
        elif kind == "stage-end" and stage in ARTIFACTS:
            self._tell("artifact", "name", stage)

    def _pipeline(self, name: Any, passes: Any) -> None:
        if isinstance(name, str) and isinstance(passes, str) and len(self._runs) < MAX_RUNS:
            self._runs.append((stage_of_run(name), parse_pipeline(passes)))

    def _tell(self, kind: Literal["stage", "artifact"], key: str, value: str) -> None:
        if (kind, value) not in self._told and len(self._told) < MAX_STAGES + len(ARTIFACTS):
            self._told.add((kind, value))
            self._emit(Event(kind, {key: value}))

    def _header(self, header: Header) -> None:
        top = header.when == "before" and self._advance(header)
        stage = self._runs[min(self._run, len(self._runs) - 1)][0]
        ordinal = self._ordinals[stage] = self._ordinals.get(stage, 0) + 1
        if top:
            self._last[stage] = ordinal
        parent = None if top else self._last.get(stage)
        name = header.name[:MAX_NAME]
        self._emit(Event("pass", {"stage": stage, "ordinal": ordinal, "name": name, "parent": parent}))

    def _advance(self, header: Header) -> bool:
        """Say whether the header is the next planned pass, and step over it."""
        run, planned = self._run, self._planned
        if run < len(self._runs) and planned >= len(self._runs[run][1]):
            run, planned = run + 1, 0
        if run >= len(self._runs) or planned >= len(self._runs[run][1]):
            return False
        if header.name not in self._runs[run][1][planned].names:
            return False
        self._run, self._planned = run, planned + 1
        return True
