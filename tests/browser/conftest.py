"""A real server with a home of its own, a real browser, and pages that fail a test on any fault of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
COMPILE_SECONDS = 90


@dataclass(frozen=True)
class Server:
    """A running ``loupe serve``."""

    url: str
    process: subprocess.Popen[bytes]

    def get(self, path: str) -> Any:
        """Return the JSON at a path."""
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def post(self, path: str, body: object) -> Any:
        """Send JSON; return what is answered."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def wait(self, path: str, until: Callable[[Any], bool], seconds: float) -> Any:
        """Read the JSON at a path until it is as wanted."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.get(path)
            if until(found):
                return found
            if time.monotonic() > deadline:
                pytest.fail(f"{path} after {seconds} s: {json.dumps(found)[:600]}")
            time.sleep(0.05)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Loupe as a user starts it, ready to compile."""
    with serve(tmp_path_factory.mktemp("home")) as running:
        yield running


@contextmanager
def serve(home: Path) -> Iterator[Server]:
    """Start Loupe over a new home, wait until it is ready to compile, and stop it."""
    if not (ROOT / "static" / "dist" / "manifest.json").exists():
        pytest.fail("static/dist is not built: run make setup")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = home / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve", "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, "LOUPE_HOME": str(home)},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    running = Server(f"http://127.0.0.1:{port}", process)
    try:
        _await_answer(running, log)
        running.wait("/about.json", lambda about: about["worker"] in ("ready", "refused"), START_SECONDS)
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def _await_answer(running: Server, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if running.process.poll() is not None:
            pytest.fail(f"loupe serve ended with {running.process.returncode}:\n{log.read_text()}")
        try:
            running.get("/health")
        except OSError:  # refused, reset, or too slow
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"loupe serve does not answer:\n{log.read_text()}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium of this machine, without a window."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        pytest.fail("no Chromium on PATH: install chromium (apt-get install chromium) to test the pages")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Faults:
    """What a page did that it must not do. A test that provokes an error names the words of it in ``allow``."""

    origin: str
    seen: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def allow(self, pattern: str) -> None:
        """Expect faults whose text the pattern is found in."""
        self.allowed.append(pattern)

    def watch(self, context: BrowserContext) -> None:
        """Collect the faults of every page of a context."""
        context.on("console", self._console)
        context.on("weberror", lambda error: self.seen.append(f"exception: {error.error}"))
        context.on("request", self._request)

    def unexpected(self) -> list[str]:
        """Return what no test asked for."""
        return [fault for fault in self.seen if not any(re.search(pattern, fault) for pattern in self.allowed)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.seen.append(f"console {message.type}: {message.text} ({message.location.get('url')})")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.origin + "/", "data:", "blob:")):
            self.seen.append(f"foreign request: {request.url}")


@pytest.fixture
def faults(server: Server) -> Iterator[Faults]:
    """Fails the test on console errors and warnings, exceptions, CSP violations and requests to elsewhere."""
    faults = Faults(server.url)
    yield faults
    assert faults.unexpected() == []


@pytest.fixture
def context(server: Server, browser: Browser, faults: Faults) -> Iterator[BrowserContext]:
    """A fresh profile, 1440 x 900."""
    context = browser.new_context(base_url=server.url, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(15_000)
    faults.watch(context)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page that paths such as ``/about`` can be opened in."""
    return context.new_page()


@pytest.fixture
def plain_page(server: Server, browser: Browser, faults: Faults) -> Iterator[Page]:
    """A page without JavaScript."""
    context = browser.new_context(
        base_url=server.url, viewport={"width": 1440, "height": 900}, java_script_enabled=False
    )
    context.set_default_timeout(15_000)
    faults.watch(context)
    yield context.new_page()
    context.close()


Compile = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def compile_example(server: Server) -> Compile:
    """Compile an example through the API and wait for all its traces; returns the group.

    ``compile_example("softmax", targets=["sm_80"])``; further fields are those of ``POST /api/v1/compiles``.
    """
    known: dict[str, dict[str, Any]] = {}

    def compile_one(name: str, **fields: Any) -> dict[str, Any]:
        key = json.dumps([name, fields], sort_keys=True)
        if key not in known:
            source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
            made = server.post("/api/v1/compiles", {"source": source, "targets": ["sm_90"], **fields})
            known[key] = server.wait(
                f"/api/v1/groups/{made['group']}",
                lambda group: all(trace["status"] in ("ok", "failed") for trace in group["traces"]),
                COMPILE_SECONDS,
            )
        return known[key]

    return compile_one
