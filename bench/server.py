"""Loupe as a user starts it: ``loupe serve`` on a free port with an empty home, spoken to over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOUPE = Path(sys.executable).with_name("loupe")
PATIENCE = 120.0


@dataclass
class Server:
    """A running server; every call opens its own connection unless it is given one."""

    port: int
    home: Path
    started: float

    def connect(self) -> http.client.HTTPConnection:
        """Open a connection that can carry several requests."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def get(self, path: str, connection: http.client.HTTPConnection | None = None) -> bytes:
        """Return the body of a page; raise RuntimeError unless it answers 200."""
        connection = connection or self.connect()
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"GET {path} answered {response.status}: {body[:500]!r}")
        return body

    def json(self, path: str) -> Any:
        """Return a JSON body."""
        return json.loads(self.get(path))

    def submit(self, source: str, arch: str) -> str:
        """Submit a source that launches its kernel; return the first trace's permalink."""
        connection = self.connect()
        body = json.dumps({"source": source, "file": "kernel.py", "targets": [arch]})
        connection.request("POST", "/api/v1/compiles", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 202:
            raise RuntimeError(f"POST /api/v1/compiles answered {response.status}: {answer}")
        trace: str = answer["traces"][0]
        return trace

    def wait(self, trace: str, name: str, *, data: dict[str, str] | None = None) -> None:
        """Follow a trace's events until one of this name (and ``data``); raise where the stream ends before."""
        connection = self.connect()
        connection.request("GET", f"/api/v1/traces/{trace}/events", headers={"Accept": "text/event-stream"})
        response = connection.getresponse()
        found = ""
        for line in response:
            field, _, value = line.decode().partition(":")
            if field == "event":
                found = value.strip()
            elif field == "data" and found == name and (data is None or json.loads(value) == data):
                connection.close()
                return
        raise RuntimeError(f"the events of {trace} ended before {name}")


def free_port() -> int:
    """Return a port that nothing listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def serve(*, wait: bool = True) -> Iterator[Server]:
    """Start a server with an empty home and stop it; ``wait`` until it is warm."""
    home = Path(tempfile.mkdtemp(prefix="loupe-bench-"))
    port = free_port()
    log = (home / "serve.log").open("wb")
    environment = {**os.environ, "LOUPE_HOME": str(home)}
    started = time.perf_counter()
    process = subprocess.Popen(
        [LOUPE, "serve", "--port", str(port)], env=environment, stdout=log, stderr=log, start_new_session=True
    )
    server = Server(port, home, started)
    try:
        if wait:
            until_answers(server, process)
            warm(server)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.close()
        shutil.rmtree(home, ignore_errors=True)


def warm(server: Server) -> None:
    """Compile once, and show the page often enough that every web process has rendered it."""
    trace = server.submit((ROOT / "examples/vector_add.py").read_text(), "sm_80")
    server.wait(trace, "done")
    for _ in range(16):
        server.get(f"/t/{trace}")


def until_answers(server: Server, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until ``/health`` answers 200; raise with the server's own words where it ends or never does.

    The supervisor listens long before anything answers, so a connection alone says nothing.
    """
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            server.get("/health")
            return
        except (OSError, http.client.HTTPException, RuntimeError):
            if process is not None and process.poll() is not None:
                break
            time.sleep(0.01)
    words = (server.home / "serve.log").read_text(errors="replace")[-2000:]
    raise RuntimeError(f"loupe serve does not answer on port {server.port}:\n{words}")


def unique(source: str, mark: object) -> str:
    """Return the source with a comment that makes its compile key new."""
    return f"{source}\n# bench {mark}\n"
