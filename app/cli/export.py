"""``loupe export``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from app.cli.options import home_option, settings
from app.cli.source import open_trace
from pipelines.trace import Manifest

ARTIFACTS = {
    "llvm-ir": "kernel.ll",
    "ptx": "kernel.ptx",
    "sass": "kernel.sass",
    "cubin": "kernel.cubin",
    "ptxas-log": "ptxas.log",
}


@click.command("export")
@click.argument("trace")
@click.option("--dir", "directory", required=True, type=click.Path(file_okay=False), help="Folder to write into.")
@home_option
def command(trace: str, directory: str, home: str | None) -> None:
    """Write a trace as files: the IR after every pass, numbered, the artifacts, the source and manifest.json."""
    file = open_trace(trace, settings(home))
    root = Path(directory)
    if root.exists() and any(root.iterdir()):
        raise click.ClickException(f"{root} is not empty; name a new folder")
    count = 0
    for name, digest in files(file.manifest):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.blob(digest))
        count += 1
    (root / "manifest.json").write_text(file.manifest.model_dump_json(by_alias=True, indent=1) + "\n", encoding="utf-8")
    click.echo(f"wrote {count + 1} files to {root}")


def files(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield each file's path below the folder, whatever names a trace carries, and the digest of its bytes."""
    yield "kernel.py", manifest.kernel.source
    for number, stage in enumerate(manifest.stages, 1):
        folder = f"{number:02}-{safe(stage.name)}"
        width = max(3, len(str(len(stage.passes))))
        if stage.input:
            yield f"{folder}/{0:0{width}}-input.mlir", stage.input
        for item in stage.passes:
            if item.text:
                name = f"{item.name}-{item.step}" if item.step else item.name
                yield f"{folder}/{item.ordinal:0{width}}-{safe(name)}.mlir", item.text
    for number, artifact in enumerate(manifest.artifacts, 1):
        yield ARTIFACTS.get(artifact.name, f"artifact-{number:02}-{safe(artifact.name)}"), artifact.digest


def safe(name: str) -> str:
    """Return a name that is one plain path component."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:80] or "unnamed"
