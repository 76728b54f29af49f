"""What a caller gives the sandbox and gets back from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

EXIT_MEMORY = 77
"""How a child ends when a MemoryError is not caught."""

OutcomeKind = Literal["ok", "exit", "signal", "timeout", "memory", "disk", "processes"]


class SandboxUnavailable(RuntimeError):  # noqa: N818 - it names a state of this machine, not a slip
    """This machine cannot confine code, or the zygote cannot start; the message says why and what to do."""


@dataclass(frozen=True)
class Limits:
    """What one run may use. Times in seconds, sizes in bytes."""

    wall_s: float = 60.0
    cpu_s: int = 60
    """CPU time of each process."""
    memory: int = 6 << 30
    """Address space of each process, and the resident memory of all of them together."""
    file: int = 512 << 20
    """The size of any one file."""
    disk: int = 2 << 30
    """Everything stored in the slot's directory, files that are unlinked and still open included."""
    files: int = 20_000
    """Files and directories in the slot."""
    processes: int = 32
    """Processes and threads at once."""
    open_files: int = 256


@dataclass(frozen=True)
class ZygoteSpec:
    """The process that children are forked from: a Python, and what it imports before the first fork."""

    name: str
    python: Path
    preload: str
    """A module; its ``warm(directory)``, where there is one, runs once before the first fork."""
    read_only: tuple[Path, ...] = ()
    """Files and directories a child may read, beyond Python itself and the system's libraries."""
    executables: tuple[Path, ...] = ()
    """The only files that a child may execute."""
    path: tuple[Path, ...] = ()
    """Directories put on ``sys.path`` for the preload module. They are not readable in a child for that."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended. ``wall_s`` counts from the request, ``cpu_s`` sums all processes of the slot."""

    kind: OutcomeKind
    exit_code: int | None
    signal: int | None
    wall_s: float
    cpu_s: float

    @property
    def ok(self) -> bool:
        """Whether the function returned and no limit was met."""
        return self.kind == "ok"


@dataclass(frozen=True)
class Confinement:
    """What is in force for every child, as found when the zygote started."""

    landlock: int
    """The Landlock ABI in use; 0 is none."""
    scopes: bool
    """Whether Landlock itself keeps signals and abstract sockets inside; seccomp does it otherwise."""
    seccomp: bool
    processes: str
    """The mechanism that bounds processes."""
    memory: str
    """The mechanism that bounds the slot's memory."""
    trusted: bool = False
    """Whether code runs although something is missing, since the operator vouched for it."""

    def describe(self) -> dict[str, str]:
        """Name each mechanism for the about page."""
        scopes = "Landlock scopes" if self.scopes else "a seccomp filter on kill and tgkill"
        return {
            "files": f"Landlock ABI {self.landlock}" if self.landlock else "not confined",
            "signals": scopes if self.landlock or self.seccomp else "not confined",
            "system calls": "seccomp allow list" if self.seccomp else "not confined",
            "processes": self.processes,
            "memory": self.memory,
        }
