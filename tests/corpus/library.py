"""The corpus's sources, their packages, and the ways to compile them here and in an independent process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.trace import Manifest
from pipelines.triton_path.compile import Compiler
from pipelines.triton_path.spec import Compiled, CompileSpec
from pipelines.triton_path.targets import chip

ROOT = Path(__file__).resolve().parents[2]
KERNELS = Path(__file__).with_name("kernels")
INDEPENDENT = Path(__file__).with_name("independent.py")
DIED = "died"
"""In the place of an error: the compiler ended its process."""
PROGRAM = "train.py"
"""The file of a package that launches its kernels."""


@dataclass(frozen=True)
class Source:
    """A file of the corpus, or a package with the file that is run."""

    name: str
    main: str
    files: dict[str, str]

    def spec(self, target: str, launch: int = 0) -> CompileSpec:
        """Ask for a launch of the source's own."""
        others = {path: text for path, text in self.files.items() if path != self.main}
        text = self.files[self.main]
        return CompileSpec(source=text, file=self.main, files=others, target=target, launch=launch)


def sources() -> list[Source]:
    """Return the corpus in the order of its names."""
    found = []
    for path in sorted(KERNELS.iterdir()):
        if path.is_dir() and (path / "__init__.py").exists():
            files = {str(each.relative_to(KERNELS)): each.read_text() for each in sorted(path.rglob("*.py"))}
            found.append(Source(path.name, f"{path.name}/{PROGRAM}", files))
        elif path.suffix == ".py":
            found.append(Source(path.stem, path.name, {path.name: path.read_text()}))
    return found


class Quick(Compiler):
    """Leaves SASS out: disassembling takes longer than compiling kernels as small as these."""

    def disassemble(self, manifest: Manifest, cubin: bytes, blobs: Any) -> Manifest:
        """Leave the manifest as it is."""
        del cubin, blobs
        return manifest


def compile_all(compiler: Compiler, specs: list[CompileSpec]) -> list[Compiled]:
    """Compile on two cores."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda spec: compiler.compile(spec, lambda _: None), specs))


class Independent:
    """The other process: Triton's own JIT and ``triton.compile``."""

    def __init__(self, folder: Path) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
            "TMPDIR": str(folder),
            "TRITON_DEFAULT_FP_FUSION": "1",
            "TRITON_ALWAYS_COMPILE": "1",
        }
        command = [sys.executable, str(INDEPENDENT)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def launches(self, source: Source, target: str) -> list[dict[str, Any]]:
        """Return the distinct launches as the JIT specialized them."""
        found: list[dict[str, Any]] = self._ask(self._job(source, target))
        assert isinstance(found, list), found
        return found

    def errors(self, source: Source, target: str, launches: list[int]) -> list[str | None]:
        """Return what ``triton.compile`` raises for some launches."""
        found = self._ask({**self._job(source, target), "compile": launches})
        return found if isinstance(found, list) else [DIED] * len(launches)

    def _job(self, source: Source, target: str) -> dict[str, Any]:
        known = chip(target)
        arch: int | str = int(target[3:]) if target.startswith("sm_") else target
        gpu = {"arch": arch, "properties": dict(known.properties()), "name": known.name}
        return {"files": source.files, "main": source.main, "target": target, "gpu": gpu, "warp_size": known.warp_size}

    def _ask(self, job: dict[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert not isinstance(answer, dict) or "error" not in answer, answer["error"]
        return answer

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=30)
