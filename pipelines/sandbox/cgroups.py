"""Control groups, version 1 or 2: where a slot's processes and memory can be bounded and killed as one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "loupe-"
_SETTLED_S = 60.0
_DEAD_S = 10.0


@dataclass(frozen=True)
class Hierarchy:
    """A directory under which groups can be made, and the controllers they get."""

    directory: Path
    version: int
    controllers: frozenset[str]


def hierarchies() -> list[Hierarchy]:
    """Where this process may make groups with a pids controller, and with a memory controller."""
    found: list[Hierarchy] = []
    own = dict(_own_groups())
    for mount_root, mount_point, kind, options in _mounts():
        names = options & {"pids", "memory"}
        if kind == "cgroup" and names:
            path = next((path for controllers, path in own.items() if names & set(controllers.split(","))), "/")
            candidates = [_below(mount_point, mount_root, path)]
        elif kind == "cgroup2":
            own_group = _below(mount_point, mount_root, own.get("", "/"))
            candidates = [own_group, *(parent for parent in own_group.parents if parent.is_relative_to(mount_point))]
        else:
            continue
        version = 1 if kind == "cgroup" else 2
        for directory in candidates:
            controllers = frozenset(names) if version == 1 else _delegated(directory)
            if controllers and os.access(directory, os.W_OK):
                found.append(Hierarchy(directory, version, controllers))
                break
    return found


def _own_groups() -> list[tuple[str, str]]:
    """(controllers, path) of this process; the controllers of version 2 are an empty string."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return [(controllers, path) for _, controllers, path in (line.split(":", 2) for line in lines)]


def _mounts() -> list[tuple[str, Path, str, set[str]]]:
    """(root, mount point, type, super options) of each mounted cgroup file system."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            fields = before.split(" ")
            mounts.append((fields[3], Path(fields[4]), kind, set(options.split(","))))
    return mounts


def _below(mount_point: Path, root: str, path: str) -> Path:
    """Where a group's path lies, given that only ``root`` and what is below it are mounted."""
    with contextlib.suppress(ValueError):
        inside = mount_point / Path(path).relative_to(root)
        if inside.is_dir():
            return inside
    return mount_point


def _delegated(directory: Path) -> frozenset[str]:
    try:
        return frozenset((directory / "cgroup.subtree_control").read_text().split()) & {"pids", "memory"}
    except OSError:
        return frozenset()


def remove(token: str) -> None:
    """Remove the groups that a sandbox made, with all that runs in them."""
    for hierarchy in hierarchies():
        _remove(hierarchy.directory / f"{_PREFIX}{token}")


class Groups:
    """One sandbox's groups, a directory in each hierarchy, held by a lock as long as the sandbox lives."""

    def __init__(self, token: str) -> None:
        """Make the directories.

        Raises:
            OSError: no hierarchy with a pids controller lets this process make groups.
        """
        self.directories: list[tuple[Hierarchy, Path]] = []
        self._locks: list[int] = []
        usable = hierarchies()
        if not any("pids" in hierarchy.controllers for hierarchy in usable):
            raise OSError("no pids controller is writable")
        try:
            for hierarchy in usable:
                _sweep(hierarchy.directory)
                directory = hierarchy.directory / f"{_PREFIX}{token}"
                directory.mkdir()
                self.directories.append((hierarchy, directory))
                self._locks.append(_lock(directory))
                if hierarchy.version == 2:
                    enable = " ".join(f"+{name}" for name in sorted(hierarchy.controllers))
                    (directory / "cgroup.subtree_control").write_text(enable)
        except OSError:
            self.close()
            raise

    @property
    def bounds_memory(self) -> bool:
        """Whether a memory controller is among them."""
        return any("memory" in hierarchy.controllers for hierarchy, _ in self.directories)

    @property
    def version(self) -> int:
        """The version of the hierarchy that bounds processes."""
        return next(hierarchy.version for hierarchy, _ in self.directories if "pids" in hierarchy.controllers)

    def expect(self) -> None:
        """Have the next entry into a group wait less.

        The first entry after a pause waits about 6 ms for the kernel's readers to pass; entering the group that this
        process is in already changes nothing and starts that wait.
        """
        for hierarchy, _ in self.directories:
            if hierarchy.version == 1:  # of version 2 the directory may be a parent of this process's group
                with contextlib.suppress(OSError):
                    (hierarchy.directory / "cgroup.procs").write_text("0")
                return

    def slot(self, name: str, processes: int, memory: int) -> Group:
        """Make the group of one slot."""
        return Group([(hierarchy, directory / name) for hierarchy, directory in self.directories], processes, memory)

    def close(self) -> None:
        """Remove the directories; whatever still runs in them is killed."""
        for _, directory in self.directories:
            _remove(directory)
        for lock in self._locks:
            os.close(lock)
        self.directories = []
        self._locks = []


class Group:
    """One slot's group."""

    def __init__(self, places: list[tuple[Hierarchy, Path]], processes: int, memory: int) -> None:
        self._places = places
        for hierarchy, directory in places:
            directory.mkdir()
            old = hierarchy.version == 1
            if "pids" in hierarchy.controllers:
                (directory / "pids.max").write_text(str(processes))
            if "memory" in hierarchy.controllers:
                (directory / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(memory))
                with contextlib.suppress(OSError):  # swap may be off or not accounted
                    name, bound = ("memory.memsw.limit_in_bytes", memory) if old else ("memory.swap.max", 0)
                    (directory / name).write_text(str(bound))

    @property
    def bounds_memory(self) -> bool:
        """Whether the kernel bounds its memory."""
        return any("memory" in hierarchy.controllers for hierarchy, _ in self._places)

    @property
    def entrances(self) -> list[str]:
        """The files a process writes 0 to, to enter."""
        return [str(directory / "cgroup.procs") for _, directory in self._places]

    def pids(self) -> list[int]:
        """The processes in it."""
        return _pids(self._places[0][1])

    def refused_processes(self) -> bool:
        """Whether the limit on processes was met."""
        return any(_count(directory / "pids.events", "max") for _, directory in self._places)

    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process of it for want of memory."""
        return any(
            _count(directory / name, "oom_kill")
            for _, directory in self._places
            for name in ("memory.oom_control", "memory.events")
        )

    def remove(self) -> None:
        """Kill what is left and remove it."""
        for _, directory in self._places:
            _remove(directory)


def _count(path: Path, key: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(value) for name, _, value in (line.partition(" ") for line in lines) if name == key), 0)


def _pids(directory: Path) -> list[int]:
    try:
        return [int(line) for line in (directory / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _remove(directory: Path) -> None:
    """Kill everything below and remove the directory and those in it."""
    with contextlib.suppress(FileNotFoundError):
        for inner in [path for path in directory.iterdir() if path.is_dir()]:
            _remove(inner)
    deadline = time.monotonic() + _DEAD_S
    while directory.is_dir():
        for pid in _pids(directory):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            directory.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)


def _lock(directory: Path) -> int:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _sweep(parent: Path) -> None:
    """Remove what sandboxes left whose process has died without a chance to."""
    for directory in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - directory.stat().st_ctime < _SETTLED_S:
                continue
            lock = _lock(directory)
            try:
                _remove(directory)
            finally:
                os.close(lock)
