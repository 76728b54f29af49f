"""What can be compiled for: the chips, and the options of each back end's own class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flask import Blueprint
from pydantic import Field
from sqlalchemy.orm import Session

from app import workers
from app.api import Endpoint, Output, endpoint
from app.services import services
from pipelines.triton_path.options import FIXED, OptionField, kind_of
from pipelines.triton_path.targets import BACKENDS, CHIPS, DEFAULT_TARGET

blueprint = Blueprint("targets", __name__)

# Shown first in the form; the rest is folded away.
COMMON = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "enable_fp_fusion")


class BackendReply(Output):
    """A back end of the compiler: ``cuda`` of NVIDIA, ``hip`` of AMD."""

    name: str
    vendor: str


class TargetReply(Output):
    """A chip."""

    arch: str
    name: str
    backend: str


class OptionReply(Output):
    """An option of type ``int``, ``bool``, ``float`` or ``str``; by back end, its default and choices."""

    name: str
    type: str
    defaults: dict[str, Any] = Field(description="by back end; one that is not here does not have the option")
    values: dict[str, list[Any]] = Field(description="by back end, where there is a choice")


class TargetsReply(Output):
    """Targets and options. ``options`` is empty until a compile worker was ready once."""

    backends: tuple[BackendReply, ...]
    targets: tuple[TargetReply, ...]
    options: tuple[OptionReply, ...]
    default: tuple[str, ...]
    common: tuple[str, ...]


@endpoint(blueprint, "GET", "/targets", Endpoint("Targets and options", TargetsReply))
def read() -> TargetsReply:
    """Tell what can be compiled for."""
    with services().database.read() as session:
        return targets(session)


def targets(session: Session) -> TargetsReply:
    """Return the targets, with the options that the worker's toolchain told of."""
    facts = workers.facts(session)
    options = _merged(facts.options) if facts else ()
    names = {option.name for option in options}
    return TargetsReply(
        backends=tuple(BackendReply(name=backend.name, vendor=backend.vendor) for backend in BACKENDS.values()),
        targets=tuple(
            TargetReply(arch=chip.arch, name=chip.name, backend=chip.backend.name) for chip in CHIPS.values()
        ),
        options=options,
        default=(DEFAULT_TARGET,),
        common=tuple(name for name in COMMON if name in names),
    )


def _merged(told: Mapping[str, Sequence[dict[str, Any]]]) -> tuple[OptionReply, ...]:
    """Return every option once, in the order of the first back end that has it."""
    found: dict[str, OptionReply] = {}
    for backend, fields in told.items():
        for option in _options(backend, fields):
            known = found.setdefault(option.name, option)
            found[option.name] = known.model_copy(
                update={"defaults": known.defaults | option.defaults, "values": known.values | option.values}
            )
    return tuple(found.values())


def _options(backend: str, fields: Sequence[dict[str, Any]]) -> Iterator[OptionReply]:
    """Keep the fields of a back end's class that a person sets, with their types in one word."""
    defaults = {field["name"]: field["default"] for field in fields}
    for data in fields:
        field = OptionField.model_validate(data)
        kind = kind_of(field)
        if kind in (None, "list") or field.name in FIXED:
            continue
        values = defaults.get(f"allowed_{field.name.removeprefix('default_')}s")
        yield OptionReply(
            name=field.name,
            type=kind or "",
            defaults={backend: field.default},
            values={backend: values} if values else {},
        )
