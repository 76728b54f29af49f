"""The client of ``bench.bare``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.server import ROOT

EXAMPLES = ROOT / "examples"


class Yardstick:
    """A warm process that compiles examples without Loupe."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, work: str, path: Path, arch: str) -> dict[str, Any]:
        """Have one compilation measured in a forked child; see ``bench.bare`` for what is answered."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the yardstick has no pipes")
        self._process.stdin.write(json.dumps({"work": work, "path": str(path), "arch": arch}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the bare compilation of {path.name} for {arch} failed")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def yardstick() -> Iterator[Yardstick]:
    """Start the process, warmed with softmax for sm_80; end it."""
    environment = {**os.environ, "TRITON_ALWAYS_COMPILE": "1", "TRITON_DEFAULT_FP_FUSION": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.bare", str(EXAMPLES / "softmax.py")],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Yardstick(process)
    finally:
        if process.stdin:
            process.stdin.close()
        process.wait(30)
