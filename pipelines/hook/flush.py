"""Push a dump that libtriton still buffers into its file, while the process goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from triton._C.libtriton import ir, passes

from .folder import FLUSH_SYMBOL

_NAME = "flush.mlir"


class Flusher:
    """Prints a module that is longer than libtriton's buffer, which makes room for it by writing out what it holds.

    The buffer cannot be reached from Python. The module is parsed once and has a context of its own, so that nothing
    of a kernel's compilation is touched.
    """

    def __init__(self, directory: Path, run: Callable[..., Any] | None = None) -> None:
        """Prepare the module; ``run`` is ``pass_manager.run`` as it was before hooks were put on it."""
        # LLVM gives a file's stream a buffer of one of its file system's blocks.
        filler = "-" * directory.stat().st_blksize
        path = directory / _NAME
        path.write_text(f'module @{FLUSH_SYMBOL} attributes {{loupe.filler = "{filler}"}} {{}}\n')
        self._context = ir.context()
        self._module = ir.parse_mlir_module(str(path), self._context)
        self._run = run or ir.pass_manager.run  # before a compilation's hooks are on it

    def flush(self) -> None:
        """Print the module; without ``MLIR_ENABLE_DUMP`` nothing happens."""
        manager = ir.pass_manager(self._context)
        manager.enable_debug()
        passes.common.add_cse(manager)
        try:
            self._run(manager, self._module, "flush")
        except TypeError:  # older versions of Triton give a run no name
            self._run(manager, self._module)
