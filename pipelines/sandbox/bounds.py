"""What bounds the number of processes of a slot. Root ignores RLIMIT_NPROC, so it depends on who runs this."""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from pipelines.sandbox import procfs
from pipelines.sandbox.cgroups import Group, Groups
from pipelines.sandbox.model import Limits
from pipelines.sandbox.slot import Slot

_FIRST_UID = 64_000
_UIDS = 1_000
_DRIFT = 128
"""Processes that the user may start elsewhere while a run lasts."""


@dataclass(frozen=True)
class Grant:
    """How one child is bounded: a uid of its own, an RLIMIT_NPROC, a control group."""

    uid: int | None = None
    processes: int | None = None
    group: Group | None = None


class Bound(Protocol):
    """A mechanism; which one is in force is found by trying it in a child."""

    @property
    def processes(self) -> str:
        """The name of what bounds processes."""

    @property
    def memory(self) -> str:
        """The name of what bounds the slot's memory."""

    def grant(self, slot: Slot, limits: Limits) -> contextlib.AbstractContextManager[Grant]:
        """Bound one slot for as long as the context lasts."""

    def expect(self) -> None:
        """Do what can be done before a run that is about to come; may take some milliseconds."""

    def close(self) -> None:
        """Give up what the mechanism holds."""


class ByGroup:
    """A pids control group for each slot."""

    def __init__(self, token: str) -> None:
        self._groups = Groups(token)

    @property
    def processes(self) -> str:  # noqa: D102 - see Bound
        return f"pids cgroup v{self._groups.version}"

    @property
    def memory(self) -> str:  # noqa: D102 - see Bound
        return "memory cgroup" if self._groups.bounds_memory else procfs.MEMORY

    @contextlib.contextmanager
    def grant(self, slot: Slot, limits: Limits) -> Iterator[Grant]:  # noqa: D102 - see Bound
        group = self._groups.slot(slot.path.name, limits.processes, limits.memory)
        try:
            yield Grant(group=group)
        finally:
            group.remove()

    def expect(self) -> None:  # noqa: D102 - see Bound
        self._groups.expect()

    def close(self) -> None:  # noqa: D102 - see Bound
        self._groups.close()


class ByUid:
    """An unprivileged uid for each slot, whose processes RLIMIT_NPROC counts; needs root."""

    processes = "uid per slot"
    memory = procfs.MEMORY

    def __init__(self, token: str) -> None:
        del token
        if os.geteuid() != 0:
            raise OSError("only root can give each slot a uid")
        self._lock = threading.Lock()
        self._free = [uid for uid in range(_FIRST_UID, _FIRST_UID + _UIDS) if not _known(uid)]
        random.SystemRandom().shuffle(self._free)  # two sandboxes of one machine should not share one

    @contextlib.contextmanager
    def grant(self, slot: Slot, limits: Limits) -> Iterator[Grant]:  # noqa: D102 - see Bound
        with self._lock:
            uid = self._free.pop()
        try:
            for path in (slot.path, *slot.path.rglob("*")):
                os.chown(path, uid, uid, follow_symlinks=False)
            slot.path.parent.chmod(0o711)
            yield Grant(uid=uid, processes=limits.processes + 1)  # one more than allowed, to be seen
        finally:
            with self._lock:
                self._free.append(uid)

    def expect(self) -> None:  # noqa: D102 - see Bound
        return

    def close(self) -> None:  # noqa: D102 - see Bound
        return


def _known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


class ByOrdinaryUser:
    """RLIMIT_NPROC on an ordinary user: it counts all processes of the uid, so it is set above what runs.

    It only stops a bomb from growing between two looks of the watcher, which ends a slot that has too many.
    """

    processes = "RLIMIT_NPROC of an ordinary user"
    memory = procfs.MEMORY

    def __init__(self, token: str) -> None:
        del token
        if os.geteuid() == 0:
            raise OSError("root ignores RLIMIT_NPROC")
        self.hidden = 0
        """Processes of this uid that the kernel counts and /proc does not show, as in a container."""

    @contextlib.contextmanager
    def grant(self, slot: Slot, limits: Limits) -> Iterator[Grant]:  # noqa: D102 - see Bound
        del slot
        running = procfs.tasks_of_user(os.geteuid()) + self.hidden
        yield Grant(processes=running + limits.processes + _DRIFT)

    def expect(self) -> None:  # noqa: D102 - see Bound
        return

    def close(self) -> None:  # noqa: D102 - see Bound
        return


class Unbounded:
    """Nothing but the watcher, for code that the operator vouched for."""

    processes = "not bounded"
    memory = procfs.MEMORY

    @contextlib.contextmanager
    def grant(self, slot: Slot, limits: Limits) -> Iterator[Grant]:  # noqa: D102 - see Bound
        del slot, limits
        yield Grant()

    def expect(self) -> None:  # noqa: D102 - see Bound
        return

    def close(self) -> None:  # noqa: D102 - see Bound
        return


MECHANISMS: tuple[tuple[str, Callable[[str], Bound]], ...] = (
    ("a pids cgroup", ByGroup),
    ("a uid per slot", ByUid),
    ("RLIMIT_NPROC", ByOrdinaryUser),
)
"""In order of preference; each maker raises OSError where it cannot work."""
