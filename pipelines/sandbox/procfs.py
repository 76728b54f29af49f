"""What /proc tells about the processes of a slot."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

MEMORY = "RLIMIT_AS, and resident memory by polling"

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")
_BLOCK = 512
_MAPPED = re.compile(rb"^(\S+) \S+ \S+ \S+ (\d+) +(/.*) \(deleted\)$", re.MULTILINE)


def group_members(leader: int) -> list[int]:
    """The processes of the process group of ``leader``."""
    members = []
    for pid in _all_pids():
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(pid) == leader:
                members.append(pid)
    return members


def tasks_of_user(uid: int) -> int:
    """How many processes and threads of ``uid`` are visible."""
    count = 0
    for pid in _all_pids():
        with contextlib.suppress(OSError):
            if (_PROC / str(pid)).stat().st_uid == uid:
                count += _threads(pid)
    return count


def tasks(pids: Iterable[int]) -> int:
    """How many threads these processes have."""
    count = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            count += _threads(pid)
    return count


def resident(pids: Iterable[int], limit: int) -> int:
    """Resident bytes of these processes; pages they share are told apart only above ``limit``."""
    pids = list(pids)
    total = sum(_resident(pid) for pid in pids)
    return total if total <= limit else sum(_proportional(pid) for pid in pids)


def unlinked(pids: Iterable[int], slot: Path, charge: int) -> int:
    """Bytes of files of the slot that have no name any more and are still open or mapped.

    A file that is only mapped counts as ``charge`` where this process may not look it up.
    """
    device = slot.stat().st_dev
    seen: dict[int, int] = {}
    for pid in pids:
        for task in _tasks(pid):
            open_files = list(_links(task / "fd"))
            for path in open_files:
                with contextlib.suppress(OSError):
                    info = path.stat()
                    if info.st_nlink == 0 and info.st_dev == device:
                        seen[info.st_ino] = info.st_blocks * _BLOCK
            with contextlib.suppress(OSError):
                _add_mapped(task, os.fsencode(slot), charge, seen)
            if open_files:
                break  # threads share one table: neither clone nor close_range may give one its own
    return sum(seen.values())


def _add_mapped(task: Path, slot: bytes, charge: int, seen: dict[int, int]) -> None:
    for area, inode, path in _MAPPED.findall((task / "maps").read_bytes()):
        if not path.startswith(slot) or int(inode) in seen:
            continue
        seen[int(inode)] = charge
        with contextlib.suppress(OSError):
            seen[int(inode)] = (task.parents[1] / "map_files" / area.decode()).stat().st_blocks * _BLOCK


def _all_pids() -> Iterator[int]:
    for entry in os.scandir(_PROC):
        if entry.name.isdigit():
            yield int(entry.name)


def _links(directory: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from directory.iterdir()


def _tasks(pid: int) -> list[Path]:
    return list(_links(_PROC / str(pid) / "task"))


def _threads(pid: int) -> int:
    """Field 20 of stat, counted after the name, which may hold anything."""
    return int((_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[17])


def _resident(pid: int) -> int:
    """Resident bytes; of a thread, since a leader that has ended shows none."""
    for task in _tasks(pid):
        with contextlib.suppress(OSError):
            pages = int((task / "statm").read_bytes().split()[1])
            if pages:
                return pages * _PAGE
    return 0


def _proportional(pid: int) -> int:
    for task in _tasks(pid):
        with contextlib.suppress(OSError):
            match = re.search(rb"^Pss: +(\d+) kB", (task / "smaps_rollup").read_bytes(), re.MULTILINE)
            if match:
                return int(match[1]) * 1024
    return _resident(pid)
