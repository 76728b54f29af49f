"""How the torch that launch code gets is named, in traces and on pages; imports nothing of it."""

from __future__ import annotations

STAND_IN = "stand-in"


def name_version(version: str) -> str:
    """Return a version as a person knows it: ``2.13.0+cpu`` is ``2.13.0 (CPU)``."""
    number, _, build = version.partition("+")
    return f"{number} (CPU)" if build == "cpu" else version
