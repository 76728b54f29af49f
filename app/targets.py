"""What can be compiled for: the chips, and the options of the backend's own class."""

from __future__ import annotations

from typing import Any

from flask import Blueprint
from sqlalchemy.orm import Session

from app import workers
from app.api import Endpoint, Output, endpoint
from app.services import services
from pipelines.triton_path.targets import CHIPS, DEFAULT_TARGET

blueprint = Blueprint("targets", __name__)

# Shown first in the form; the rest is folded away.
COMMON = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")


class TargetReply(Output):
    """A chip."""

    arch: str
    name: str


class OptionReply(Output):
    """An option: its type as the backend declares it, and the value that it has by itself."""

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
    options = tuple(OptionReply.model_validate(option) for option in facts.options) if facts else ()
    names = {option.name for option in options}
    return TargetsReply(
        targets=tuple(TargetReply(arch=chip.arch, name=chip.name) for chip in CHIPS.values()),
        options=options,
        default=(DEFAULT_TARGET,),
        common=tuple(name for name in COMMON if name in names),
    )
