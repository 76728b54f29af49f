"""Run hostile code in a confined child of a warmed process, bounded in everything it can use.

``docs/security.md`` describes what holds and how each part is tested.
"""

from __future__ import annotations

from pipelines.sandbox.model import Confinement, Limits, Outcome, SandboxUnavailable, ZygoteSpec
from pipelines.sandbox.sandbox import Finished, Sandbox
from pipelines.sandbox.slot import Slot

__all__ = [
    "Confinement",
    "Finished",
    "Limits",
    "Outcome",
    "Sandbox",
    "SandboxUnavailable",
    "Slot",
    "ZygoteSpec",
]
