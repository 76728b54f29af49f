"""From a request to a group of traces: known results at once, the rest as jobs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, JsonValue, ValidationError, field_validator, model_validator
from sqlalchemy import select
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.orm import Session

from app import event_log, workers
from app.api import Input
from app.blobs import BlobStore
from app.config import MAX_SOURCE_BYTES
from app.errors import ApiError
from app.models import FINAL, LOCAL, Capture, Group, Trace
from pipelines.kernels.library import LibraryError, find_library_file
from pipelines.kernels.package import MAX_PACKAGE_FILES, check_package, find_entry
from pipelines.trace import Toolchain
from pipelines.triton_path.spec import CompileSpec, LaunchFound
from pipelines.triton_path.targets import CHIPS, DEFAULT_TARGET

Text = Annotated[str, Field(max_length=512)]
Files = Annotated[
    dict[Text, str],
    Field(
        min_length=1,
        max_length=MAX_PACKAGE_FILES,
        description="a package: text by path, such as pkg/util.py; at most 4 MB in UTF-8, in place of source",
    ),
]

DEFAULT_FILE = "kernel.py"


def bounded_source(source: str) -> str:
    """Return a source of at most ``MAX_SOURCE_BYTES`` in UTF-8; raise ValueError for a longer one."""
    if len(source.encode("utf-8", errors="surrogatepass")) > MAX_SOURCE_BYTES:
        raise ValueError(f"the source has more than {MAX_SOURCE_BYTES >> 20} MB in UTF-8")
    return source


def checked_files(files: dict[str, str] | None) -> dict[str, str] | None:
    """Return a package's files; raise ValueError where their paths or sizes are not taken."""
    if files:
        check_package(files)
    return files


def entry_file(files: Mapping[str, str], wanted: str | None) -> str:
    """Return the file of a package to start with; raise ValueError where it is not there, or several could be meant."""
    if wanted is not None:
        if wanted not in files:
            raise ValueError(f"file: there is no {wanted[:200]!r} among the files")
        return wanted
    return find_entry(files)


class CompileRequest(Input):
    """A kernel's source and what to compile it for: one file, a package of several, or an installed library's module.

    With ``args`` (and ``constexprs``) the kernel is compiled as given; without, the source's own launch code is run
    and every distinct launch that it makes is compiled. Several targets or launches make a group of traces.
    """

    source: Annotated[
        str | None,
        Field(
            min_length=1, max_length=MAX_SOURCE_BYTES, description="Python source of the kernel; at most 1 MB in UTF-8"
        ),
    ] = None
    files: Files | None = None
    module: Annotated[
        Text | None,
        Field(description="a module of a library that is installed where Loupe runs; source is then an edit of it"),
    ] = None
    file: Annotated[
        Text | None,
        Field(description="of files, the one to start with; else the name that locations in the IR carry, kernel.py"),
    ] = None
    kernel: Annotated[Text | None, Field(description="the kernel to compile; all that are launched when left out")] = (
        None
    )
    args: Annotated[
        dict[Text, Text] | None,
        Field(max_length=256, description="types by argument: *fp16:16 (16 divides it), i32, fp32, None"),
    ] = None
    constexprs: Annotated[dict[Text, JsonValue], Field(max_length=256, default_factory=dict)]
    targets: Annotated[tuple[Text, ...], Field(min_length=1, max_length=16)] = (DEFAULT_TARGET,)
    options: Annotated[dict[Text, JsonValue], Field(max_length=64, default_factory=dict)]
    fresh: Annotated[bool, Field(description="compile even what is known")] = False

    @field_validator("source")
    @classmethod
    def _bounded(cls, source: str | None) -> str | None:
        return source and bounded_source(source)

    @field_validator("files")
    @classmethod
    def _package(cls, files: dict[str, str] | None) -> dict[str, str] | None:
        return checked_files(files)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.files and (self.source is not None or self.module is not None):
            raise ValueError("give files, or source, or module: one of them")
        if not self.files and self.source is None and self.module is None:
            raise ValueError("source: give the kernel's source, or files, or module")
        if self.module is not None and self.file is not None:
            raise ValueError("file: a module's file is known; leave it out")
        if self.files:
            entry_file(self.files, self.file)
        return self

    @field_validator("targets")
    @classmethod
    def _known(cls, targets: tuple[str, ...]) -> tuple[str, ...]:
        for target in targets:
            if target not in CHIPS:
                raise ValueError(f"there is no target {target}; choose from {', '.join(CHIPS)}")
        return tuple(dict.fromkeys(targets))

    def texts(self) -> dict[str, Any]:
        """Return the ``source`` to start with, its ``file``, the package's other ``files``, and the ``module``.

        Raises:
            ApiError: 422 where no such module is installed.
        """
        if self.files:
            file = entry_file(self.files, self.file)
            others = {path: text for path, text in self.files.items() if path != file}
            return {"source": self.files[file], "file": file, "files": others, "module": None}
        if self.module is None:
            return {"source": self.source, "file": self.file or DEFAULT_FILE, "files": {}, "module": None}
        try:
            found = find_library_file(self.module)
        except LibraryError as error:
            raise ApiError(422, str(error), detail={"in": "body", "field": "module"}) from None
        source = found.text if self.source is None else self.source
        return {"source": source, "file": found.path, "files": {}, "module": self.module}

    def specs(self, texts: Mapping[str, Any]) -> list[CompileSpec]:
        """Return one compilation of ``texts`` for each target.

        Raises:
            ApiError: 422 where the compiler takes no such request.
        """
        try:
            return [
                CompileSpec(
                    **texts,
                    kernel=self.kernel,
                    arguments=self.args,
                    constexprs=dict(self.constexprs),
                    target=target,
                    options=dict(self.options),
                )
                for target in self.targets
            ]
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            at = str(fault["loc"][0]) if fault["loc"] else ""
            field = {"arguments": "args", "target": "targets"}.get(at, at)
            message = fault["msg"].removeprefix("Value error, ")
            raise ApiError(
                422, f"{field}: {message}" if field else message, detail={"in": "body", "field": field}
            ) from None


@dataclass(frozen=True)
class Submission:
    """A new group: all its traces, and those of them that still have to be compiled."""

    group: str
    traces: tuple[str, ...]
    queued: tuple[str, ...]

    @property
    def url(self) -> str:
        """The page to open: the trace, or the group of several."""
        return f"/t/{self.traces[0]}" if len(self.traces) == 1 else f"/g/{self.group}"


def submit(session: Session, blobs: BlobStore, request: CompileRequest, team: str = LOCAL) -> Submission:
    """Store a request as a group; what was compiled before, launches included, is there at once."""
    texts = request.texts()
    specs = request.specs(texts)
    group = Group(team=team, request={**request.model_dump(mode="json"), **texts})
    session.add(group)
    session.flush()
    toolchain = workers.toolchain(session)
    traces: list[Trace] = []
    for spec in specs:
        first = add_trace(session, blobs, group, spec, toolchain, None)
        traces.append(first)
        if first.compile_key and first.status in FINAL:
            found = launches(session, team, first.compile_key)
            traces += add_siblings(session, blobs, group, spec, found, toolchain)
    return Submission(group.id, tuple(t.id for t in traces), tuple(t.id for t in traces if t.status == "queued"))


def add_trace(
    session: Session,
    blobs: BlobStore,
    group: Group,
    spec: CompileSpec,
    toolchain: Toolchain | None,
    launch: LaunchFound | None,
) -> Trace:
    """Add a trace to a group, filled if its compile key is known."""
    key = spec.compile_key(toolchain) if toolchain else None
    trace = Trace(
        group_id=group.id,
        team=group.team,
        owner=group.owner,
        visibility=group.visibility,
        kernel=launch.kernel if launch else spec.kernel,
        config=launch.config if launch else None,
        target=spec.target,
        variant=spec.launch,
        spec=spec.model_dump(mode="json", exclude={"source", "files"}),
        compile_key=key,
    )
    known = lookup(session, blobs, group.team, key) if key and not is_fresh(group) else None
    if known:
        trace.status, trace.content, trace.kernel = known.status, known.content, known.kernel
        trace.cached, trace.finished = True, time.time()
    session.add(trace)
    session.flush()
    event_log.append(session, trace.id, *(("done",) if known else ("state",)), status=trace.status)
    return trace


def add_siblings(
    session: Session,
    blobs: BlobStore,
    group: Group,
    spec: CompileSpec,
    found: Sequence[LaunchFound],
    toolchain: Toolchain | None,
) -> list[Trace]:
    """Add a trace for each further launch of a source, unless it is there already."""
    there = select(Trace.variant).where(Trace.group_id == group.id, Trace.target == spec.target)
    taken = set(session.execute(there).scalars())
    return [
        add_trace(session, blobs, group, spec.model_copy(update={"launch": index}), toolchain, launch)
        for index, launch in enumerate(found)
        if index not in taken
    ]


def is_fresh(group: Group) -> bool:
    """Say whether a group wants everything compiled, known or not."""
    return bool(group.request.get("fresh"))


def lookup(session: Session, blobs: BlobStore, team: str, key: str) -> Trace | None:
    """Return a finished trace of this team that our own worker made from the same input, if its file opens."""
    rows = (
        select(Trace)
        .where(Trace.team == team, Trace.compile_key == key, Trace.status.in_(FINAL), Trace.cacheable)
        .order_by(Trace.created.desc())
        .limit(1)
    )
    trace = session.execute(rows).scalar_one_or_none()
    return trace if trace and trace.content and blobs.opens(trace.content) else None


def launches(session: Session, team: str, key: str) -> list[LaunchFound]:
    """Return the launches that a source is known to make."""
    capture = session.get(Capture, (team, key))
    return [LaunchFound.model_validate_json(item) for item in capture.launches] if capture else []


def keep_launches(session: Session, team: str, key: str, found: Sequence[LaunchFound]) -> None:
    """Remember the launches of a source for the next submission."""
    values: dict[str, Any] = {
        "team": team,
        "key": key,
        "launches": [launch.model_dump_json() for launch in found],
        "created": time.time(),
    }
    session.execute(upsert(Capture).values(values).on_conflict_do_nothing())
