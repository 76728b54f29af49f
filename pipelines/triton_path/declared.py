"""Launches that a source's own decorators declare: TorchInductor's output. Runs inside the confined child."""

from __future__ import annotations

import ast
import types
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipelines.kernels.capture import Launch
from pipelines.kernels.inductor import hints, source
from pipelines.kernels.inductor.launches import InductorError, declared_in, launch_of
from pipelines.kernels.inductor.modules import install
from pipelines.triton_path.errors import UserError
from pipelines.triton_path.imports import Sources, keep_text
from pipelines.triton_path.running import Ran, execute_tree, undone


@dataclass(frozen=True)
class DeclaredLaunches:
    """A source that was run for its kernels only; what a decorator leaves open is ``guessed`` in its launch."""

    ran: Ran
    launches: list[Launch]


def run_declared(sources: Sources) -> DeclaredLaunches | None:
    """Run what makes a file's declared kernels; return None where it declares none, or does not parse."""
    file = sources.file
    try:
        data = Path(file).read_bytes()
        tree = ast.parse(data, file)
        embedded = source.embedded(tree) if source.is_output(tree) else None
    except (SyntaxError, ValueError, RecursionError):  # told when the source is run as it is
        return None
    if embedded is None:
        return None
    install()
    keep_text(file, data)
    module = types.ModuleType(Path(file).stem)
    module.__file__ = file
    found = DeclaredLaunches(Ran(sources, vars(module), None), [])
    try:
        with undone():
            _execute(tree, embedded, file, vars(module))
            _collect(vars(module), found)
    except MemoryError:
        raise
    except InductorError as error:
        return replace(found, ran=replace(found.ran, error=UserError(str(error))))
    except BaseException as error:  # the source may end in any way, also by SystemExit
        return replace(found, ran=replace(found.ran, error=error))
    return found


def _execute(tree: ast.Module, embedded: list[source.Embedded], file: str, namespace: dict[str, Any]) -> None:
    """Run what makes the kernels, each at its lines of the file.

    A text is a module of its own for Inductor, so that many may name their kernel alike: ``triton_``.
    """
    namespace |= {name: getattr(hints, name) for name in source.REMOVED}
    execute_tree(source.kernels_only(tree), file, namespace)
    for item in embedded:
        inner = ast.increment_lineno(ast.parse(item.text, file), item.line - 1)
        own = dict(namespace)
        execute_tree(source.kernels_only(inner), file, own)
        made = {key: value for key, value in declared_in(own).items() if namespace.get(key) is not value}
        namespace |= {item.name if len(made) == 1 else key: value for key, value in made.items()}


def _collect(namespace: dict[str, Any], found: DeclaredLaunches) -> None:
    for name, kernel in declared_in(namespace).items():
        launch = launch_of(kernel)
        found.launches.append(launch)
        namespace[name] = launch.function
