"""Follows a running compilation by the files it writes, for progress only; the trace is built at the end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from pydantic import TypeAdapter, ValidationError

from pipelines.dumps.mlir import Header, HeaderFollower
from pipelines.dumps.nesting import Planned, parse_pipeline
from pipelines.sandbox import Slot
from pipelines.triton_path.output import MAX_DUMP, MAX_JSON
from pipelines.triton_path.spec import Event, LaunchFound
from pipelines.triton_path.stages import stage_of_run

_CHUNK = 8 << 20


class Tail:
    """Reads what was appended to a slot's file since the last time, up to ``limit`` bytes in all."""

    def __init__(self, name: str, limit: int) -> None:
        self._name, self._limit = name, limit
        self._at = 0

    def read(self, slot: Slot) -> bytes:
        """Return the new bytes, none where the file is not there."""
        descriptor = slot.open(self._name)
        if descriptor is None or self._at >= self._limit:
            return b""
        try:
            data = os.pread(descriptor, _CHUNK, self._at)
        finally:
            os.close(descriptor)
        self._at += len(data)
        return data


class Follower:
    """Turns new bytes of the event log and the dump into events."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._events, self._dump = Tail("events.jsonl", MAX_JSON), Tail("dump.mlir", MAX_DUMP)
        self._rest = b""
        self._headers = HeaderFollower()
        self._runs: list[tuple[str, list[Planned]]] = []
        self._run = self._planned = 0
        self._ordinals: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._waiting: list[Header] = []
        self._launches_known = False

    def poll(self, slot: Slot) -> None:
        """Emit what is new; called every few milliseconds while the child runs, and once after it ended."""
        if not self._launches_known:
            self._read_launches(slot)
        lines = (self._rest + self._events.read(slot)).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._event(line)
        self._waiting += self._headers.feed(self._dump.read(slot))
        while self._waiting and self._runs:
            self._header(self._waiting.pop(0))

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
            kind, stage = data["event"], str(data.get("stage"))[:64]
            if kind == "pipeline" and len(self._runs) < 100:
                self._runs.append((stage_of_run(str(data["name"])), parse_pipeline(str(data["passes"]))))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        if kind == "stage-begin":
            self._emit(Event("stage", {"stage": stage}))
        elif kind == "stage-end" and stage in ("llvm-ir", "ptx", "cubin"):
            self._emit(Event("artifact", {"name": stage}))

    def _header(self, header: Header) -> None:
        if header.when in ("after", "failed"):
            return
        top = header.when == "before" and self._advance(header)
        stage = self._runs[min(self._run, len(self._runs) - 1)][0]
        ordinal = self._ordinals[stage] = self._ordinals.get(stage, 0) + 1
        if top:
            self._last[stage] = ordinal
        parent = None if top else self._last.get(stage)
        self._emit(Event("pass", {"stage": stage, "ordinal": ordinal, "name": header.name, "parent": parent}))

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
