"""The stream that libtriton prints its passes to, turned to a file of its own for each compilation.

``MLIR_DUMP_PATH`` is opened once a process and buffered in blocks. Its descriptor is found by the file that it is,
and another file is put on it (``dup2``); a module that is printed in between pushes out what is buffered.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from triton._C import libtriton

from .flush import Flusher

ENABLE = "MLIR_ENABLE_DUMP"
PATH = "MLIR_DUMP_PATH"

_MAX_DESCRIPTOR = 65_536


class DumpError(RuntimeError):
    """This Triton's passes cannot be recorded; the message says why."""


class Dump:
    """The process's one stream. ``open`` it once; then ``turn`` it to a file, compile, and ``close`` that.

    ``run`` is ``pass_manager.run`` without hooks.
    """

    def __init__(self, directory: Path, run: Callable[..., Any]) -> None:
        self._run = run
        self._given = os.environ.get(PATH)
        self._file = directory / f"stream-{os.getpid()}.mlir"
        self._flusher: Flusher | None = None
        self._descriptor = -1

    @property
    def given(self) -> str | None:
        """Where the program itself wanted its dump, which is not written while this records."""
        return self._given

    def open(self) -> None:
        """Have libtriton open its stream.

        Raises:
            DumpError: this Triton has no such stream, or it cannot be found.
        """
        if self._descriptor >= 0:
            return
        with self.printing():
            known = libtriton.get_cache_invalidating_env_vars() if hasattr(libtriton, _KNOWN) else {}
            if PATH not in known:
                raise DumpError(f"this Triton does not know {PATH}, so its passes cannot be recorded")
            with tempfile.TemporaryDirectory(prefix="loupe-") as folder:
                self._flusher = Flusher(Path(folder), self._run)
            self._flusher.flush()
        candidates = [str(self._file), *([self._given] if self._given else [])]
        found = next((number for name in candidates for number in _descriptors(name)), None)
        self._file.unlink(missing_ok=True)
        if found is None:
            raise DumpError("the file that Triton prints its passes to cannot be found among the open ones")
        self._descriptor = found
        atexit.register(self._release)

    def _release(self) -> None:
        """Let go of what is libtriton's before it is unloaded, which would else complain."""
        self._flusher = None

    def turn(self, file: Path) -> None:
        """Print to a file from here on; what was printed before, and not pushed out, is lost."""
        self._put(os.devnull)
        self.flush()
        self._put(str(file))

    def flush(self) -> None:
        """Push what is printed into the file."""
        if self._flusher:
            with self.printing():
                self._flusher.flush()

    def close(self) -> None:
        """Push what is printed into the file, and let nothing more come to it."""
        self.flush()
        self._put(os.devnull)

    @contextlib.contextmanager
    def printing(self) -> Iterator[None]:
        """Have passes printed; the environment is the program's own again afterwards."""
        before = {name: os.environ.get(name) for name in (ENABLE, PATH)}
        os.environ.update({ENABLE: "1", PATH: str(self._file)})
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def _put(self, name: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600)
        try:
            os.dup2(descriptor, self._descriptor, inheritable=False)
        finally:
            os.close(descriptor)


_KNOWN = "get_cache_invalidating_env_vars"


def _descriptors(name: str) -> Iterator[int]:
    """Yield the open descriptors of a file."""
    try:
        wanted = os.stat(name)  # noqa: PTH116 - beside fstat, which pathlib lacks
    except OSError:
        return
    highest = min(os.sysconf("SC_OPEN_MAX"), _MAX_DESCRIPTOR)
    for number in range(3, highest):
        try:
            found = os.fstat(number)
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            yield number
