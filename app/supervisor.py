"""``loupe serve``: one process tree of the web server and a compile worker, restarted after crashes."""

from __future__ import annotations

import errno
import http.client
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from types import FrameType

from app.config import Settings
from app.database import migrate
from app.processes import PARENT, owner_only

log = logging.getLogger(__name__)

STOP_SECONDS = 12.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
STEADY_SECONDS = 30.0
MAX_WEB_FAILURES = 5


class ServeError(Exception):
    """Why serving is not possible; the message says what to do."""


class Child:
    """A process of the tree and how often it failed lately."""

    def __init__(
        self, name: str, command: list[str], env: Mapping[str, str], descriptors: tuple[int, ...] = ()
    ) -> None:
        self.name = name
        self._command = command
        self._env = {**os.environ, **env, PARENT: str(os.getpid())}
        self._descriptors = descriptors
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._due = 0.0
        self.failures = 0

    def start(self) -> None:
        """Start the process in a group of its own, so that a terminal's Ctrl-C reaches the supervisor only."""
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            self._command, env=self._env, pass_fds=self._descriptors, stdin=subprocess.DEVNULL, process_group=0
        )

    def tend(self) -> float | None:
        """Restart the process once its pause is over; return the seconds until then, None while it runs."""
        now = time.monotonic()
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return None
            self.failures = 1 if now - self._started > STEADY_SECONDS else self.failures + 1
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self.failures - 1))
            log.error("the %s ended with code %s; it starts again in %.1f s", self.name, code, pause)
            self._process, self._due = None, now + pause
        if now < self._due:
            return self._due - now
        self.start()
        return None

    def send(self, signum: int) -> None:
        """Send a signal, if the process runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signum)

    def wait(self, deadline: float) -> bool:
        """Wait for the end until ``deadline`` on the monotonic clock; say whether it came."""
        if self._process is None:
            return True
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True


class Supervisor:
    """Holds the listening socket and tends both children until it is told to stop."""

    def __init__(self, settings: Settings, announce: Callable[[str], None]) -> None:
        self._settings = settings
        self._announce = announce
        self._wake = threading.Event()
        self._stops = 0

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT; return the exit code.

        Raises:
            ServeError: the address cannot be listened on, or is open to others without a login, or the web server does
                not come up.
        """
        settings = self._settings
        check_exposure(settings)
        with owner_only():
            settings.prepare()
            migrate(settings.database)
        with listen(settings.host, settings.port) as listener:
            env = {
                "LOUPE_HOME": str(settings.home),
                "LOUPE_HOST": settings.host,
                "LOUPE_PORT": str(listener.getsockname()[1]),
                "LOUPE_TRUST_CODE": "1" if settings.trust_code else "",
            }
            python = [sys.executable, "-m"]
            worker = Child("compile worker", [*python, "app.cli", "worker", "compile"], env)
            web = Child("web server", [*python, "app.web", str(listener.fileno())], env, (listener.fileno(),))
            for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(signum, self._on_signal)
            # The worker goes first: warming its compiler takes longest.
            worker.start()
            web.start()
            address = url(settings.host, listener.getsockname()[1])
            threading.Thread(target=self._say_when_ready, args=(listener.getsockname(), address), daemon=True).start()
            try:
                return self._tend(worker, web)
            finally:
                self._stop(worker, web)

    def _on_signal(self, signum: int, _frame: FrameType | None) -> None:
        if signum != signal.SIGCHLD:
            self._stops += 1
        self._wake.set()

    def _tend(self, worker: Child, web: Child) -> int:
        while not self._stops:
            self._wake.clear()
            pauses = [pause for child in (worker, web) if (pause := child.tend()) is not None]
            if web.failures >= MAX_WEB_FAILURES:
                raise ServeError(f"the web server ended {MAX_WEB_FAILURES} times in a row; what it printed says why")
            self._wake.wait(min(pauses, default=60.0))
        return 0

    def _stop(self, *children: Child) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        for child in children:
            child.send(signal.SIGTERM)
        for child in children:
            while not child.wait(min(deadline, time.monotonic() + 0.2)):
                if self._stops > 1 or time.monotonic() >= deadline:
                    log.error("the %s did not stop in time and is killed", child.name)
                    child.send(signal.SIGKILL)
                    child.wait(time.monotonic() + 5)
                    break

    def _say_when_ready(self, address: tuple[str, int], shown: str) -> None:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address[0], address[0])  # noqa: S104 - compared, not bound
        while not self._stops:
            connection = http.client.HTTPConnection(host, address[1], timeout=60)
            try:
                connection.request("GET", "/health", headers={"Host": "localhost"})
                if connection.getresponse().status == 200:
                    self._announce(shown)
                    return
            except OSError:
                time.sleep(0.05)
            finally:
                connection.close()


def check_exposure(settings: Settings) -> None:
    """Refuse an address that other machines reach unless it is wanted: there is no login, so anybody could compile."""
    if _is_loopback(settings.host):
        return
    if not settings.no_login:
        raise ServeError(
            f"{settings.host} can be reached from other machines, and Loupe has no login: whoever reaches it can read "
            "all traces and compile. Put a proxy with a login before 127.0.0.1, or add --no-login if only people you "
            "trust reach this address"
        )
    log.warning("no login: whoever reaches %s can read all traces and compile", settings.host)


def _is_loopback(host: str) -> bool:
    """Say whether a name or address leads to this machine only; one that leads nowhere is told by ``listen``."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return True
    return all(ip_address(str(item[4][0]).partition("%")[0]).is_loopback for item in found)


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket; raise ServeError where that cannot be."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        if isinstance(error, socket.gaierror):
            raise ServeError(f"{host} is no address of this machine: {error.strerror}") from None
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        words = f"port {port} on {host} {reason}; choose another with --port, or stop what uses it"
        raise ServeError(words) from None


def url(host: str, port: int) -> str:
    """Return the address to open in a browser."""
    shown = "localhost" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host  # noqa: S104 - compared
    return f"http://{shown}:{port}/"
