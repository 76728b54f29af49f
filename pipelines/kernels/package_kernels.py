"""The kernels of a package: those of the file to start with, and those that it launches from the others."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping

from pipelines.kernels.discover import LAUNCHERS, MAX_KERNELS, Discovery, FoundKernel, Reading, discover, launched_in


def discover_package(files: Mapping[str, str], entry: str) -> Discovery:
    """Return the kernels of all files, the entry's first; nothing runs.

    A kernel of another file is a helper unless some file launches it by its name. Where the entry can be read and
    another file cannot, that one's fault is told.
    """
    reading = Reading(files.get)
    first = discover(files[entry], entry, reading)
    if first.error:
        return first
    others = {path: text for path, text in sorted(files.items()) if path != entry and "jit" in text}
    found = {path: discover(text, path, reading) for path, text in others.items()}
    launched = {name for text in files.values() for name in _launched(text)}
    kernels = [_known(kernel, launched, kernel.helper) for kernel in first.kernels]
    taken = {kernel.name for kernel in kernels}
    for made in found.values():
        for kernel in made.kernels:
            if kernel.name not in taken:
                taken.add(kernel.name)
                kernels.append(_known(kernel, launched, True))
    faults = [(path, made.error) for path, made in found.items() if made.error]
    error = None
    if faults:
        path, fault = faults[0]
        at = f"{path}:{fault.line}" if fault.line else path
        error = fault.model_copy(update={"message": f"{at}: {fault.message}", "line": None, "column": None})
    launches = any(kernel.launched for kernel in kernels)
    imported = tuple(item for item in first.imported if item.name not in taken)
    told = {"kernels": tuple(kernels[:MAX_KERNELS]), "launches": launches, "error": error, "imported": imported}
    return first.model_copy(update=told)


def _known(kernel: FoundKernel, launched: set[str], helper: bool) -> FoundKernel:
    """Return a kernel with what the package's other files tell: who is launched is no helper."""
    is_launched = kernel.declared or kernel.name in launched
    return kernel.model_copy(update={"launched": is_launched, "helper": helper and not is_launched})


def _launched(text: str) -> Iterator[str]:
    """Yield the names in ``kernel[grid](...)``, ``module.kernel[grid](...)`` and ``kernel.warmup(...)``."""
    if not any(mark in text for mark in ("](", *LAUNCHERS)):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # told by discover
        return
    yield from (name.rpartition(".")[2] for name in launched_in(tree))
