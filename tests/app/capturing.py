"""Runs ``loupe capture`` over real programs, which compile with the real Triton."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.trace import Manifest
from pipelines.tracefile import TraceFile

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "pipelines" / "hook" / "programs"
SECRET = "alice"


@dataclass
class Captured:
    """A finished ``loupe capture``: how it ended, what it printed, what it stored where."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found

    def kernels(self) -> list[str]:
        return [trace["kernel"] for trace in self.told["traces"]]

    def files(self) -> list[TraceFile]:
        return [TraceFile.open(Path(trace["kept_at"])) for trace in self.told["traces"]]

    def manifest(self, kernel: str) -> Manifest:
        return next(file.manifest for file in self.files() if file.manifest.kernel.name == kernel)


def capture(
    folder: Path, code: str | None = None, *flags: str, program: tuple[str, ...] | None = None, **environment: str
) -> Captured:
    """Capture a program that lies in somebody's home, into files."""
    project = folder / "home" / SECRET / "project"
    if not project.exists():
        shutil.copytree(PROGRAMS, project)
    if code is not None:
        (project / "program.py").write_text(code)
    command = [sys.executable, "-m", "app.cli", "capture", "--json", "-o", str(folder / "out"), *flags]
    command += ["--home", str(folder / "loupe"), "--", *(program or (sys.executable, "program.py"))]
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TRITON_", "MLIR_"))}
    clean |= {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_DEFAULT_FP_FUSION": "1"}
    ended = subprocess.run(
        command, cwd=project, env={**clean, **environment}, capture_output=True, text=True, timeout=110, check=False
    )
    return Captured(ended.returncode, ended.stdout, ended.stderr, folder)


COMPILE_ADD = (PROGRAMS / "train.py").read_text().partition("add()\nadd()")[0]
