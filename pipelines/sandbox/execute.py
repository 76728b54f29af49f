"""One run: bound it, ask the zygote for a child, watch the child to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pipelines.sandbox.bounds import Bound, Grant
from pipelines.sandbox.model import Limits, Outcome
from pipelines.sandbox.slot import Slot
from pipelines.sandbox.spawn import ZygoteProcess
from pipelines.sandbox.watch import Watcher

Poll = Callable[[Slot], None]


def execute(
    zygote: ZygoteProcess,
    bound: Bound,
    slot: Slot,
    call: Mapping[str, Any],
    limits: Limits,
    poll: Poll | None = None,
    watched: Limits | None = None,
) -> Outcome:
    """Run ``call`` (its function, request and environment) in ``slot``; nothing of it is left afterwards.

    ``watched`` is what is enforced from outside, where that is not ``limits`` too.

    Raises:
        ConnectionError: the zygote had ended before it could fork.
        SandboxUnavailable: the zygote ended meanwhile, or the child could not be confined.
    """
    began = time.monotonic()
    with bound.grant(slot, limits) as grant, zygote.connect(_order(slot, call, limits, grant)) as connection:
        return Watcher(connection, slot, watched or limits, grant, poll).watch(began)


def _order(slot: Slot, call: Mapping[str, Any], limits: Limits, grant: Grant) -> dict[str, Any]:
    return {
        **call,
        "slot": str(slot.path),
        "uid": grant.uid,
        "cgroups": grant.group.entrances if grant.group else [],
        "rlimits": {
            "cpu_s": limits.cpu_s,
            "memory": limits.memory,
            "file": limits.file,
            "open_files": limits.open_files,
            "processes": grant.processes,
        },
    }
