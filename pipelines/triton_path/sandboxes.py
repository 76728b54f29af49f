"""The sandboxes of the default toolchain: Triton's own, and one with torch imported, where torch is installed."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from pipelines.sandbox import Limits, Sandbox, SandboxUnavailable, ZygoteSpec
from pipelines.triton_path.spec import CompileSpec
from pipelines.triton_path.toolchain import binaries, torch_root, triton_root

log = logging.getLogger(__name__)

CHILD = "pipelines.triton_path.child"
TORCH_CHILD = "pipelines.triton_path.torch_child"
_IMPORTS_TORCH = re.compile(r"^[ \t]*(?:import|from)[ \t][^#\n]*\btorch\b", re.MULTILINE)


class Sandboxes:
    """Chooses where a source runs. A child imports torch itself where that sandbox cannot start."""

    def __init__(
        self, directory: Path, limits: Limits, libraries: Sequence[Path] = (), *, trust_code: bool = False
    ) -> None:
        def make(name: str, preload: str) -> Sandbox:
            return Sandbox(_spec(name, preload, libraries), directory, limits=limits, trust_code=trust_code)

        self.plain = make("triton", CHILD)
        self._torch = make("triton-torch", TORCH_CHILD) if torch_root() is not None else None
        self._lock = threading.Lock()
        self._starting: threading.Thread | None = None

    def start(self) -> None:
        """Start Triton's, and torch's in the background, since its import takes seconds.

        Raises:
            SandboxUnavailable: code cannot be confined here.
        """
        self.plain.start()
        with self._lock:
            if self._torch is not None and self._starting is None:
                self._starting = threading.Thread(target=self._start_torch, name="torch", daemon=True)
                self._starting.start()

    def _start_torch(self) -> None:
        try:
            if self._torch is not None:
                self._torch.start()
        except SandboxUnavailable as error:
            log.warning("torch cannot be imported beforehand, sources that use it take longer: %s", error)
            self._torch = None

    def of(self, spec: CompileSpec) -> Sandbox:
        """Return where to run a source; waits for torch's where that is still starting."""
        if self._torch is None or not uses_torch(spec):
            return self.plain
        if self._starting is not None:
            self._starting.join()
        return self._torch or self.plain

    def close(self) -> None:
        """End both, and all that was forked from them."""
        for sandbox in (self._torch, self.plain):
            if sandbox is not None:
                sandbox.close()


def uses_torch(spec: CompileSpec) -> bool:
    """Say whether a source imports torch, as its text tells; an installed library's most likely does."""
    return spec.module is not None or any(_IMPORTS_TORCH.search(text) for text in (spec.source, *spec.files.values()))


def _spec(name: str, preload: str, libraries: Sequence[Path]) -> ZygoteSpec:
    return ZygoteSpec(
        name=name,
        python=Path(sys.executable),
        preload=preload,
        read_only=(*(path for path in (triton_root(), torch_root()) if path is not None), *libraries),
        executables=binaries(),
        path=(Path(__file__).resolve().parents[2], *libraries),
    )
