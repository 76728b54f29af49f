from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask.testing import FlaskClient

from app.cli import main
from app.services import Services
from pipelines import tracefile
from pipelines.dumps.mlir import read_records
from pipelines.trace import (
    Artifact,
    Diagnostic,
    Failure,
    Kernel,
    Manifest,
    Pass,
    Resources,
    Stage,
    Target,
    Tool,
    Toolchain,
    digest,
)

PATIENCE = 60.0
SOURCE = b"import triton\n\n\n@triton.jit\ndef scale(x_ptr):\n    pass\n"
PTX = b"//\n.visible .entry scale()\n{\n\tret;\n}"
SASS = b"\t.text\n        /*0000*/                   MOV R1, c[0x0][0x28] ;  /* 0x00000a0000017a02 */\n" + (
    b"                                                        /* 0x000fe40000000f00 */\n        /*0010*/   EXIT ;"
)
CUBIN = b"\x7fELF\x00binary"
TOOLCHAIN = Toolchain(name="triton 3.9.0", tools=(Tool(name="triton", version="3.9.0", sha256="0" * 64),))


@dataclass(frozen=True)
class Built:
    """A trace made by hand from a real dump."""

    manifest: Manifest
    blobs: dict[str, bytes]

    @property
    def data(self) -> bytes:
        return tracefile.write(self.manifest, self.blobs)


def build(golden: Path, *, failed: bool = False) -> Built:
    """Make a small trace: the passes of a kept dump as ``ttir``, and artifacts of every kind."""
    blobs: dict[str, bytes] = {}

    def keep(data: bytes) -> str:
        blobs[digest(data)] = data
        return digest(data)

    records = [
        r for r in read_records((golden / "triton-3.9-scale-sm80.mlir").read_bytes()) if r.header.when == "before"
    ]
    passes = tuple(
        Pass(
            ordinal=index,
            name=record.header.name,
            argument=record.header.argument,
            anchor=record.header.anchor,
            text=keep(after.text),
        )
        for index, (record, after) in enumerate(pairwise(records), 1)
    )
    if failed:
        passes = (*passes, Pass(ordinal=len(passes) + 1, name="cse", argument="cse", anchor="", text=None, failed=True))
    artifacts = (
        Artifact(name="ptx", digest=keep(PTX)),
        Artifact(name="cubin", digest=keep(CUBIN), binary=True),
        Artifact(name="sass", digest=keep(SASS)),
    )
    manifest = Manifest(
        pipeline="triton",
        status="failed" if failed else "ok",
        kernel=Kernel(name="scale", file="kernel.py", source=keep(SOURCE), arguments=(), origin="given"),
        launch=None,
        target=Target(arch="sm_80", backend="cuda", warp_size=32),
        options={"num_warps": 4},
        toolchain=TOOLCHAIN,
        stages=(Stage(name="ttir", input=keep(records[0].text), passes=passes),),
        artifacts=() if failed else artifacts,
        launch_metadata={"shared": 0},
        resources=None if failed else Resources(registers=16, shared=0),
        diagnostics=(Diagnostic(severity="error", message="no", file="kernel.py", line=5, column=1),) if failed else (),
        failure=Failure(kind="error", stage="ttir", address=f"ttir:{len(passes)}", message="no") if failed else None,
    )
    manifest.check()
    return Built(manifest, blobs)


def upload(client: FlaskClient, trace: Built) -> str:
    answer = client.post("/api/v1/traces", data=trace.data, content_type="application/octet-stream")
    assert answer.status_code == 201, answer.text
    found: str = answer.get_json()["id"]
    return found


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda data: data[: len(data) // 2],
    "no trace": lambda _: b"PK\x03\x04" + bytes(100),
    "manifest": lambda data: data[:30] + bytes(20) + data[50:],
}


def damage(services: Services, trace: Built, kind: str) -> None:
    """Harm a stored file behind the server's back: take it away, break it, flip a byte of its last text, or swap it."""
    path = services.blobs.path(trace.manifest.content)
    data = path.read_bytes()
    if kind == "missing":
        path.unlink()
    elif kind == "text":
        path.write_bytes(data[:-20] + bytes([data[-20] ^ 255]) + data[-19:])
    elif kind == "other":
        other = trace.manifest.model_copy(update={"options": {"num_warps": 8}})
        path.write_bytes(tracefile.write(other, trace.blobs))
    else:
        path.write_bytes(BROKEN[kind](data))


def compile_body(**more: Any) -> dict[str, Any]:
    return {"source": SOURCE.decode(), "targets": ["sm_80"], **more}


def together(count: int, work: Any) -> list[Any]:
    """Run ``work(index)`` in threads that start at once; return the results."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count

    def run(index: int) -> None:
        barrier.wait()
        results[index] = work(index)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def error_of(answer: Any) -> dict[str, Any]:
    """The error object of an answer, after checking that there is nothing else."""
    data = json.loads(answer.data)
    assert list(data) == ["error"]
    assert set(data["error"]) == {"code", "message", "detail"}
    found: dict[str, Any] = data["error"]
    return found


@dataclass(frozen=True)
class Home:
    """A home that compiled one kernel from the command line."""

    path: Path
    group: str
    trace: str


def loupe(*words: str | Path, home: Path | None = None) -> Result:
    """Run the command in this process."""
    env = {"LOUPE_HOME": str(home)} if home else {}
    return CliRunner().invoke(main, [str(word) for word in words], env=env)


def until(found: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Wait until something is true; return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = found()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail(f"not so after {seconds} s")
