"""The files that ``loupe compile`` is given: one source, several, a folder or a zip, as the API takes them."""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from app.config import MAX_SOURCE_BYTES
from pipelines.kernels.archive import read_archive
from pipelines.kernels.library import site_directories
from pipelines.kernels.package import MAX_PACKAGE_FILES, PackageError, check_package, find_entry

FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,90}\.py")


def read_files(paths: Sequence[str], entry: str | None) -> dict[str, Any]:
    """Return the request's ``source`` and ``file``, or ``files`` and ``file``.

    Raises:
        click.UsageError: they cannot be compiled as they are; the message says what to give.
    """
    if len(paths) == 1 and entry is None and not Path(paths[0]).is_dir() and not paths[0].endswith(".zip"):
        return _lone(paths[0])
    if "-" in paths:
        raise click.UsageError("- is one source of its own; name the files of a package")
    try:
        files, root = _package(paths)
        check_package(files)
    except PackageError as error:
        raise click.UsageError(str(error)) from None
    return {"files": files, "file": _entry(files, entry, root)}


def _lone(path: str) -> dict[str, Any]:
    source, name = read_source(path), Path(path).name
    if path != "-":
        _refuse_siblings(Path(path), source)
    return {"source": source, "file": name if FILE_NAME.fullmatch(name) else None}


def _refuse_siblings(path: Path, source: str) -> None:
    """Raise click.UsageError where a file imports from files beside it, which it was not given with."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # told by the compilation, with its line
        return
    folder = path.resolve().parent
    for name in _imported(tree):
        beside = name.startswith(".") or (_holds(folder, name) and not _is_known(name, path.stem))
        if beside:
            words = f"{path.name} imports {name if name != '.' else 'from its own package'}, a file beside it"
            raise click.UsageError(
                f"{words}: give the folder, as in loupe compile {path.parent} --entry {path.name}, or all its files"
            )


def _holds(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()


def _is_known(name: str, own: str) -> bool:
    """Say whether a file can do without its neighbour: the name is its own, or that of what is installed."""
    return name in (own, *sys.stdlib_module_names) or any(_holds(site, name) for site in site_directories())


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield what a file cannot do without: relative names with dots before them, else the first part."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (item.name.partition(".")[0] for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "") if node.level else (node.module or "").partition(".")[0]
        elif not isinstance(node, ast.Try) and not _is_for_types(node):
            waiting += ast.iter_child_nodes(node)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _package(paths: Sequence[str]) -> tuple[dict[str, str], Path | None]:
    """Return the files by path in their package, and the folder that the paths start from; None for a zip's."""
    if len(paths) == 1 and paths[0].endswith(".zip"):
        return read_archive(Path(paths[0]).read_bytes()).files, None
    folders = [Path(path).resolve() for path in paths if Path(path).is_dir()]
    given = [Path(path).resolve() for path in paths if not Path(path).is_dir()]
    found = given + [file for folder in folders for file in _sources(folder)]
    if not found:
        raise PackageError(f"there is no Python file in {', '.join(paths)}")
    if len(found) > MAX_PACKAGE_FILES:
        raise PackageError(f"there are more than {MAX_PACKAGE_FILES} Python files; give a smaller folder")
    root = Path(os.path.commonpath([*folders, *(file.parent for file in given)]))
    while (root / "__init__.py").is_file() and root != root.parent:
        root = root.parent
    return {file.relative_to(root).as_posix(): read_source(str(file)) for file in found}, root


def _sources(folder: Path) -> Iterator[Path]:
    """Yield the Python files of a folder, but not what is hidden, installed, or reached by a link."""
    for at, folders, names in os.walk(folder):
        inside = [name for name in folders if not name.startswith(".") and name not in ("__pycache__", "node_modules")]
        folders[:] = sorted(name for name in inside if not Path(at, name, "pyvenv.cfg").exists())
        for name in sorted(names):
            file = Path(at, name)
            if name.endswith(".py") and not name.startswith(".") and not file.is_symlink():
                yield file


def _entry(files: dict[str, str], entry: str | None, root: Path | None) -> str:
    if entry is None:
        try:
            return find_entry(files)
        except PackageError as error:
            raise click.UsageError(f"--entry: {error}") from None
    if entry in files:
        return entry
    if root is not None:
        asked = Path(entry).resolve()
        if asked.is_relative_to(root) and asked.relative_to(root).as_posix() in files:
            return asked.relative_to(root).as_posix()
    ending = [path for path in files if path.endswith(f"/{entry.removeprefix('./')}")]
    if len(ending) == 1:
        return ending[0]
    raise click.UsageError(f"--entry: there is no {entry} among the files; there are {', '.join(list(files)[:8])}")


def read_source(file: str) -> str:
    """Return the source as text; ``-`` is standard input."""
    data = sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1) if file == "-" else Path(file).read_bytes()
    if len(data) > MAX_SOURCE_BYTES:
        raise click.ClickException(f"{file} is larger than {MAX_SOURCE_BYTES >> 20} MB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file} is not UTF-8: byte {error.start}") from None
