"""What can be compiled for: the chips, and the options of the backend's own class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flask import Blueprint
from sqlalchemy.orm import Session

from app import workers
from app.api import Endpoint, Output, endpoint
from app.services import services
from pipelines.triton_path.options import FIXED, OptionField, kind_of
from pipelines.triton_path.targets import CHIPS, DEFAULT_TARGET

blueprint = Blueprint("targets", __name__)

# Shown first in the form; the rest is folded away.
COMMON = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")


class TargetReply(Output):
    """A chip."""

    arch: str
    name: str


class OptionReply(Output):
    """An option of type ``int``, ``bool``, ``float`` or ``str``, its value when left out, and those it may take."""

    name: str
    type: str
    default: Any
    values: list[Any] | None = None


class TargetsReply(Output):
    """Targets and options. ``options`` is empty until a compile worker was ready once."""

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
    options = tuple(_options(facts.options)) if facts else ()
    names = {option.name for option in options}
    return TargetsReply(
        targets=tuple(TargetReply(arch=chip.arch, name=chip.name) for chip in CHIPS.values()),
        options=options,
        default=(DEFAULT_TARGET,),
        common=tuple(name for name in COMMON if name in names),
    )


def _options(fields: Sequence[dict[str, Any]]) -> Iterator[OptionReply]:
    """Keep the fields of the backend's class that a person sets, with their types in one word."""
    defaults = {field["name"]: field["default"] for field in fields}
    for data in fields:
        field = OptionField.model_validate(data)
        kind = kind_of(field)
        if kind in (None, "list") or field.name in FIXED:
            continue
        values = defaults.get(f"allowed_{field.name.removeprefix('default_')}s")
        yield OptionReply(name=field.name, type=kind or "", default=field.default, values=values)
