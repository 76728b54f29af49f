"""Measuring and removing what hostile code has built."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.sandbox import tree

_MEMORY = Path("/dev/shm")


@pytest.fixture
def parent() -> Iterator[tuple[Path, int]]:
    """A directory, in memory where there is such a place: disks are slow with 100,000 files."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as directory:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        yield Path(directory), descriptor
        os.close(descriptor)


def measured(path: Path, entries: int = 1_000, depth: int = 8) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return tree.measure(descriptor, entries, depth)
    finally:
        os.close(descriptor)


def nest(top: Path, depth: int) -> None:
    here = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        os.close(here)
        here = below
    os.close(here)


def test_removes_100_000_files(parent: tuple[Path, int]) -> None:
    directory, descriptor = parent
    (directory / "tree").mkdir()
    for number in range(100_000):
        os.close(os.open(directory / "tree" / str(number), os.O_CREAT | os.O_WRONLY, 0))
    tree.remove(descriptor, "tree")
    assert list(directory.iterdir()) == []


def test_removes_any_depth_with_few_descriptors(parent: tuple[Path, int]) -> None:
    directory, descriptor = parent
    (directory / "tree").mkdir()
    nest(directory / "tree", 5_000)
    tree.remove(descriptor, "tree")
    assert list(directory.iterdir()) == []


def test_removes_directories_closed_to_their_owner(parent: tuple[Path, int]) -> None:
    directory, descriptor = parent
    inner = directory / "tree" / "a" / "b" / "c"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    for path in (inner, *list(inner.parents)[:3]):
        path.chmod(0)
    tree.remove(descriptor, "tree")
    assert list(directory.iterdir()) == []


def test_removing_follows_no_link(parent: tuple[Path, int]) -> None:
    directory, descriptor = parent
    outside = directory / "outside"
    outside.mkdir(mode=0o750)
    (outside / "kept").write_text("kept")
    (directory / "tree" / "inner").mkdir(parents=True)
    (directory / "tree" / "link").symlink_to(outside)
    (directory / "tree" / "inner" / "link").symlink_to(outside)
    (directory / "tree" / "file").symlink_to(outside / "kept")
    os.mkfifo(directory / "tree" / "fifo")
    tree.remove(descriptor, "tree")
    assert [path.name for path in directory.iterdir()] == ["outside"]
    assert (outside / "kept").read_text() == "kept"
    assert outside.stat().st_mode & 0o777 == 0o750
    (directory / "swapped").symlink_to(outside)
    with pytest.raises(NotADirectoryError):
        tree.remove(descriptor, "swapped")
    assert (outside / "kept").exists()


def test_removing_what_is_gone_is_no_error(parent: tuple[Path, int]) -> None:
    tree.remove(parent[1], "never")


def test_measure_counts_what_files_occupy(parent: tuple[Path, int]) -> None:
    directory, _ = parent
    assert measured(directory) == 0
    (directory / "a").mkdir()
    (directory / "a" / "file").write_bytes(b"x" * 100_000)
    with (directory / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (directory / "link").symlink_to("/usr")
    assert 100_000 < measured(directory) < 150_000


def test_measure_refuses_too_many_entries_and_levels(parent: tuple[Path, int]) -> None:
    directory, _ = parent
    nest(directory, 8)
    assert measured(directory, entries=16, depth=8) > 0
    with pytest.raises(tree.TreeRefused):
        measured(directory, entries=15, depth=8)
    with pytest.raises(tree.TreeRefused):
        measured(directory, entries=16, depth=7)
