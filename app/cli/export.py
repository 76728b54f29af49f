"""``loupe export``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click

from app.cli.options import home_option, json_option, settings
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
@json_option
def command(trace: str, directory: str, home: str | None, as_json: bool) -> None:
    """Write a trace as files: the IR after every pass, numbered, the artifacts, the source and manifest.json."""
    file = open_trace(trace, settings(home))
    root = Path(directory)
    if root.exists() and any(root.iterdir()):
        raise click.ClickException(f"{root} is not empty; name a new folder")
    written: list[dict[str, str | int]] = []
    for name, digest in files(file.manifest):
        data = file.blob(digest)
        write(root / name, data)
        written.append({"name": name, "digest": digest, "bytes": len(data)})
    write(root / "manifest.json", file.manifest.model_dump_json(by_alias=True, indent=1).encode() + b"\n")
    if as_json:
        click.echo(json.dumps({"dir": str(root), "manifest": "manifest.json", "files": written}))
    else:
        click.echo(f"wrote {len(written) + 1} files to {root}")


def write(path: Path, data: bytes) -> None:
    """Write a file and the folders above it; raise click.ClickException where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None


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
