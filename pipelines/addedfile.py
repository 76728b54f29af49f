"""LLVM's passes as a file, in the frames of ``pipelines.tracefile``, and a trace together with them."""

from __future__ import annotations

import functools

from pydantic import ValidationError

from pipelines.addenda import AddedPasses
from pipelines.trace import Manifest, TraceError, canonical_json
from pipelines.tracefile import FrameFile, TraceFile


def canonical(added: AddedPasses) -> bytes:
    """Return the JSON that a file's name is the hash of."""
    return canonical_json(added.model_dump(mode="json", by_alias=True))


class AddedFile(FrameFile):
    """An open file of LLVM's passes."""

    @functools.cached_property
    def added(self) -> AddedPasses:
        """The head, parsed."""
        try:
            return AddedPasses.model_validate_json(self._canonical)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            raise TraceError(f"not a file of LLVM's passes: {fault['msg']}") from None

    def digests(self) -> tuple[str, ...]:
        """Return every text that the head names."""
        return self.added.digests()


def extend(manifest: Manifest, added: AddedPasses) -> Manifest:
    """Return a manifest with LLVM's stages after its own; it is for reading, and its hash is no content."""
    return manifest.model_copy(update={"stages": (*manifest.stages, *added.stages)})


class ExtendedTrace(TraceFile):
    """A trace and its passes of LLVM as if they were one file."""

    def __init__(self, trace: TraceFile, added: AddedFile) -> None:
        self._trace = trace
        self._added = added
        self._own = frozenset(trace.digests())

    @functools.cached_property
    def manifest(self) -> Manifest:
        """The trace's manifest with LLVM's stages."""
        return extend(self._trace.manifest, self._added.added)

    @property
    def content(self) -> str:
        """The trace's own content."""
        return self._trace.content

    @property
    def data(self) -> bytes:
        """The trace's own file."""
        return self._trace.data

    @property
    def head_size(self) -> int:
        """Bytes of both heads."""
        return self._trace.head_size + self._added.head_size

    @property
    def text_size(self) -> int:
        """Bytes of all texts, decompressed; those that both hold count twice."""
        return self._trace.text_size + self._added.text_size

    def blob(self, name: str) -> bytes:
        """Return a blob by its digest from whichever file holds it."""
        return (self._trace if name in self._own else self._added).blob(name)

    def verify(self) -> None:
        """Raise TraceError unless both files are sound."""
        self._trace.verify()
        self._added.verify()
