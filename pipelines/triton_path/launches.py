"""The launch that a request asks for: one that the source's own code makes, or one from given arguments."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue
from triton.backends.compiler import GPUTarget

from pipelines.hook.describe import written
from pipelines.kernels.capture import Capture, EnoughError, Launch, TimeUpError, Trouble
from pipelines.kernels.gpu import Gpu
from pipelines.kernels.torch_choice import Torch
from pipelines.triton_path import slot
from pipelines.triton_path.backend_options import parse_options, plain, read_options, shown
from pipelines.triton_path.declared import DeclaredLaunches, run_declared
from pipelines.triton_path.errors import UserError, frames, out_of_memory, words
from pipelines.triton_path.given import (
    check_names,
    given_launches,
    is_named,
    own_kernels,
    refuse_interpreted,
    undefined_kernels,
)
from pipelines.triton_path.guessing import guess_note
from pipelines.triton_path.imports import Sources
from pipelines.triton_path.running import Ran, run_source
from pipelines.triton_path.values import constant, parse_constant, passed
from pipelines.triton_path.virtual import clean, short

Request = dict[str, Any]


@dataclass
class Found:
    """The launch to compile and its options, with what else was found on the way to it."""

    launch: Launch
    options: Any
    ran: Ran
    origin: str
    notes: list[dict[str, JsonValue]] = field(default_factory=list)


def find_launch(request: Request, target: GPUTarget, backend: Any) -> Found:
    """Run the source and return the launch that is asked for: as given, else as captured, else by a guess.

    Raises:
        UserError: there is no such launch.
        BaseException: whatever ended the source before there was one.
    """
    runs = request["arguments"] is None
    overriding = read_options(backend, request["options"])
    sources = Sources.of(request)
    capture = Capture(target, request["properties"], sources.own)
    torch = Torch(Gpu(target.arch, request["properties"], request["device"]))
    if runs and request["launch"] and not overriding and not request["constexprs"]:
        capture.stop_after(request["kernel"], request["launch"])
    capture.install()
    with capture.bounded():
        declared = run_declared(sources)
        if declared is None:
            torch.install()
        ran = declared.ran if declared else run_source(sources, main=runs)
    capture.remove()
    made = declared.launches if declared else capture.launches
    captured = _captured(made, ran, request) if runs else []
    launches, refused = (captured, {}) if captured else _given(ran, request, backend)
    distinct: dict[str, Launch] = {}
    for launch in launches:
        launch.options = {**plain(launch.options), **overriding}
        distinct.setdefault(launch.key, launch)
    launches = list(distinct.values())
    write_launches(launches)
    number = request["launch"]
    if number >= len(launches):
        raise UserError(f"there are {len(launches)} launches, none numbered {number}")
    launch = launches[number]
    options = parse_options(backend, launch.options, label(launch) or launch.function.__name__)
    origin = "captured" if captured else "guessed" if runs or launch.guessed else "given"
    notes = [_note(trouble, ran.file) for trouble in capture.troubles] + _end(ran) if runs else []
    notes += _torch_note(torch)
    notes += [_left_out(name, error, ran.file) for name, error in refused.items()]
    if origin == "guessed":
        notes.insert(0, guess_note(launch.function, launch.guessed, NOT_LAUNCHED if runs else NOT_GIVEN, ran.file))
    elif declared and runs:
        notes += _first_choices(launch, declared, request)
    return Found(launch, options, ran, origin, notes)


def _first_choices(launch: Launch, declared: DeclaredLaunches, request: Request) -> list[dict[str, JsonValue]]:
    """Mark what a decorator leaves to its autotuner as guessed, and tell of it."""
    launch.guessed = {name: why for name, why in launch.guessed.items() if name not in request["constexprs"]}
    if not launch.guessed:
        return []
    told = f"{', '.join(launch.guessed)} and num_warps are a first choice: the decorator leaves them to the autotuner"
    return [{"message": told, "file": declared.ran.file, "line": None, "column": None}]


NOT_LAUNCHED = "The source's own code does not launch this kernel, so its signature is not certain."
NOT_GIVEN = "Not every argument was given, so the signature is not certain."


def _captured(made: list[Launch], ran: Ran, request: Request) -> list[Launch]:
    wanted = request["kernel"]
    launches = [x for x in made if wanted is None or is_named(x.function, wanted, ran.namespace)]
    for name, value in request["constexprs"].items() if launches else ():
        read = parse_constant(name, value, ran.namespace)
        for launch in launches:
            check_names(launch.function, [name])
            _override(launch, name, read)
    return launches


def _left_out(name: str, error: UserError, file: str) -> dict[str, JsonValue]:
    """Tell of a kernel that no launch could be made for, among several that were meant."""
    return {"message": clean(f"{name} was left out: {error}"), "file": file, "line": None, "column": None}


def _given(ran: Ran, request: Request, backend: Any) -> tuple[list[Launch], dict[str, UserError]]:
    """Return launches of what is given, the rest guessed, and why there is none for some of the kernels, by name.

    Raises:
        UserError: there is no kernel to guess for, or it cannot be guessed.
        BaseException: what ended the source before it had defined its kernels.
    """
    runs = request["arguments"] is None
    if runs:
        refuse_interpreted(ran)
    failed = ran.error is not None and not isinstance(ran.error, SystemExit)
    if ran.error is not None and failed and (not runs or _undefined(ran, request["kernel"])):
        raise ran.error
    if ran.error is not None and out_of_memory(ran.error):
        raise ran.error
    if runs and not own_kernels(ran) and not isinstance(ran.error, SystemExit):
        wanted = repr(request["kernel"]) if request["kernel"] else "a kernel"
        raise UserError(
            f"the source's own code never launches {wanted}, and it defines none at its top level that could be "
            "compiled by a guess"
        )
    return given_launches(ran, request, backend)


def _undefined(ran: Ran, wanted: str | None) -> bool:
    """Say whether the source ended before it had defined what it is asked for."""
    if wanted is None:
        return bool(undefined_kernels(ran)) or not own_kernels(ran)
    return not any(wanted in (name, kernel.function.__name__) for name, kernel in own_kernels(ran, wanted).items())


def _override(launch: Launch, name: str, value: Any) -> None:
    """Give a constexpr another value than the launch code gave it."""
    index = launch.function.arg_names.index(name)
    launch.signature = {**launch.signature, name: "constexpr"}
    launch.constexprs = {path: item for path, item in launch.constexprs.items() if path[0] != index}
    launch.constexprs[(index,)] = value
    launch.attributes = {path: item for path, item in launch.attributes.items() if path[0] != index}


def _note(trouble: Trouble, file: str) -> dict[str, JsonValue]:
    why = f": {type(trouble.error).__name__}: {words(trouble.error)}" if trouble.error else ""
    return {"message": clean(trouble.what + why), "file": trouble.file or file, "line": trouble.line, "column": None}


def _torch_note(torch: Torch) -> list[dict[str, JsonValue]]:
    """Say which torch the source was given, since signatures come from its tensors."""
    if torch.used is None:
        return []
    return [{"message": f"torch: {torch.used}", "file": None, "line": None, "column": None, "severity": "note"}]


def _end(ran: Ran) -> list[dict[str, JsonValue]]:
    """Tell of what ended the source after its launches; that it left on its own is no news."""
    error = ran.error
    left = isinstance(error, SystemExit) and error.code in (None, 0)
    if error is None or left or isinstance(error, EnoughError):
        return []
    places = frames(error, ran.own)
    at = places[-1] if places else {"file": ran.file, "line": None, "column": None}
    why = f"{short(type(error).__name__)}: {words(error)}"
    message = f"the source's own code ended early, later launches are missing: {why}"
    return [{"message": message, "file": at["file"], "line": at["line"], "column": at["column"]}]


def write_launch(found: Found) -> None:
    """Write ``launch.json``: the kernel, its signature and options."""
    launch, namespace = found.launch, found.ran.namespace
    names = launch.function.arg_names
    arguments = [
        {**_argument(name, launch.signature[name], (index,), launch, namespace), "guessed": name in launch.guessed}
        for index, name in enumerate(names)
    ]
    values = [passed(name, value, namespace) for name, value in zip(names, launch.values, strict=False)]
    data = {
        "name": short(launch.function.__name__),
        "origin": found.origin,
        "arguments": arguments,
        "options": shown(found.options),
        "launch": {"grid": launch.grid, "config": label(launch), "arguments": values}
        if found.origin == "captured"
        else None,
        "notes": found.notes,
        "complete": not isinstance(found.ran.error, TimeUpError),
    }
    slot.write_output("launch.json", json.dumps(data))


def write_launches(launches: list[Launch]) -> None:
    """Write ``launches.json``: every distinct launch, in order."""
    listed = [{"kernel": short(x.function.__name__), "config": label(x), "grid": x.grid} for x in launches]
    slot.write_output("launches.json", json.dumps(listed))


def label(launch: Launch) -> str | None:
    """Name an autotune config by the values in force, which the request may have overridden."""
    if launch.config is None:
        return None
    names = launch.function.arg_names
    parts = []
    for name, value in launch.config.items():
        if name in names:
            value = launch.constexprs.get((names.index(name),), value)
        else:
            value = plain(launch.options).get(name, value)
        parts.append(f"{name}: {constant(value, {})}")
    return clean(", ".join(parts))


def _argument(name: str, kind: Any, path: tuple[int, ...], launch: Launch, namespace: Any) -> dict[str, Any]:
    """Describe one argument; a tuple's elements are its members, named by position or by the tuple's own fields."""
    if isinstance(kind, tuple):
        fields = getattr(kind, "_fields", range(len(kind)))
        members = [
            _argument(str(field), item, (*path, index), launch, namespace)
            for index, (field, item) in enumerate(zip(fields, kind, strict=True))
        ]
        return {"name": short(name), "type": written(kind), "divisibility": None, "value": None, "members": members}
    attributes = dict(launch.attributes.get(path) or [])
    return {
        "name": short(name),
        "type": clean(str(kind)),
        "divisibility": attributes.get("tt.divisibility"),
        "value": constant(launch.constexprs.get(path), namespace) if kind == "constexpr" else None,
        "pointer_range": attributes.get("tt.pointer_range"),
    }
