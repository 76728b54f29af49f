"""From a recording of the hook's, or trace files, to trace files with SASS, and into this home as groups of traces."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.config import Settings
from app.models import Group, Trace
from app.processes import owner_only
from app.runner import keep_times
from app.services import Services
from app.uploads import imported_trace
from pipelines import tracefile
from pipelines.sandbox import SandboxUnavailable
from pipelines.trace import Manifest, StageTime
from pipelines.triton_path import recording
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.recording import Recorded, RecordingError
from pipelines.triton_path.result import Blobs

log = logging.getLogger(__name__)


@dataclass
class Item:
    """A trace to be kept, as a file's bytes; ``compiled`` counts how often the program made this very one."""

    name: str
    manifest: Manifest
    data: bytes
    content: str
    group: str | None = None
    times: tuple[StageTime, ...] = ()
    compiled: int = 1


@dataclass
class Read:
    """What came of a recording: its distinct traces, and in words what could not be read."""

    items: list[Item] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def read_recording(directory: Path, settings: Settings) -> Read:
    """Read all compilations of a recording and disassemble them; equal ones are one trace.

    Raises:
        RecordingError: the folder is no recording at all.
    """
    read = Read()
    known: dict[tuple[str | None, str], Item] = {}
    with _disassembler(settings) as disassembler:
        for folder in recording.find(directory):
            try:
                item = _item(recording.read(folder), disassembler)
            except RecordingError as error:
                read.refused.append(str(error))
                continue
            same = known.setdefault((item.group, item.content), item)
            if same is item:
                read.items.append(item)
            else:
                same.compiled += 1
    return read


def _item(recorded: Recorded, disassembler: _Disassembler) -> Item:
    compiled = disassembler.complete(recorded)
    data = tracefile.write(compiled, disassembler.blobs.by_digest)
    return Item(recorded.name, compiled, data, compiled.content, recorded.group, recorded.compiled.times)


class _Disassembler:
    """Starts the sandbox when there is something to disassemble; without one a trace has no SASS."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._compiler: Compiler | None = None
        self._missing = False
        self.blobs = Blobs()

    def complete(self, recorded: Recorded) -> Manifest:
        """Return the manifest with SASS where that can be had; ``blobs`` then has all its texts."""
        self.blobs = Blobs(dict(recorded.compiled.blobs))
        manifest = recorded.compiled.manifest
        compiler = self._started() if recorded.cubin else None
        if compiler is None or recorded.cubin is None:
            return manifest
        return compiler.disassemble(manifest, recorded.cubin, self.blobs, recorded.paths.disassembly)

    def _started(self) -> Compiler | None:
        if self._compiler is None and not self._missing:
            self._settings.prepare()
            compiler = Compiler(self._settings.sandbox, trust_code=self._settings.trust_code)
            try:
                compiler.start()
            except (SandboxUnavailable, RuntimeError) as error:
                compiler.close()
                self._missing = True
                log.warning("no SASS is made: %s", error)
                return None
            self._compiler = compiler
        return self._compiler

    def close(self) -> None:
        """End the sandbox."""
        if self._compiler:
            self._compiler.close()


@contextmanager
def _disassembler(settings: Settings) -> Iterator[_Disassembler]:
    disassembler = _Disassembler(settings)
    with owner_only():
        try:
            yield disassembler
        finally:
            disassembler.close()


def keep(services: Services, items: Iterable[Item]) -> list[Trace]:
    """Store traces under permalinks of their own; those of one autotuner make a group.

    They never answer for a compilation: no compile key is known for what ran elsewhere.
    """
    found = list(items)
    groups = {name: [item for item in found if item.group == name] for name in {item.group for item in found} - {None}}
    traces: list[Trace] = []
    for item in found:
        services.blobs.put(item.content, item.data)
    with services.database.write() as session:
        made: dict[str | None, Group] = {}
        for name, members in groups.items():
            if len(members) > 1:
                made[name] = Group(request={"imported": name})
                session.add(made[name])
        session.flush()
        for item in found:
            group = made.get(item.group)
            variant = groups[item.group].index(item) if group else 0
            trace = imported_trace(item.manifest, item.content, group.id if group else None, variant)
            session.add(trace)
            session.flush()
            traces.append(trace)
            if item.times:
                keep_times(session, item.content, item.times)
    return traces
