"""The web server's process: gunicorn with threads, over a socket that the supervisor opened."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]  # gunicorn has no types

from app import create_app
from app.config import Settings
from app.events import WATCHER
from app.processes import die_with_parent, owner_only

PROCESSES = 2
# An open event stream holds a thread.
THREADS = 64
GRACE_SECONDS = 5


class Web(BaseApplication):  # type: ignore[misc]  # an untyped base
    """Gunicorn configured from our settings instead of its own files and flags."""

    def __init__(self, settings: Settings, descriptor: int) -> None:
        self._settings = settings
        self._descriptor = descriptor
        self._app: Flask | None = None
        super().__init__()

    def load_config(self) -> None:
        """Set what differs from gunicorn's defaults."""
        values: dict[str, Any] = {
            "bind": f"fd://{self._descriptor}",
            "worker_class": "gthread",
            "workers": min(PROCESSES, os.cpu_count() or 1),
            "threads": THREADS,
            "keepalive": 30,
            "graceful_timeout": GRACE_SECONDS,
            "timeout": 120,
            "preload_app": True,
            "umask": 0o077,
            "post_worker_init": self._end_streams_on_stop,
            "loglevel": "warning",
            "worker_tmp_dir": "/dev/shm" if os.path.isdir("/dev/shm") else None,  # noqa: S108,PTH112 - gunicorn's heartbeat file
            "control_socket_disable": True,
        }
        for name, value in values.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        """Return the app, its templates compiled; it is made before gunicorn forks and opens its connections after."""
        if self._app is None:
            self._app = create_app(self._settings)
            for name in self._app.jinja_env.list_templates(extensions=["html"]):
                self._app.jinja_env.get_template(name)
        return self._app

    def _end_streams_on_stop(self, _worker: Any) -> None:
        before = signal.getsignal(signal.SIGTERM)
        watcher = self.load().extensions[WATCHER]

        def stop(signum: int, frame: FrameType | None) -> None:
            watcher.stop()
            if callable(before):
                before(signum, frame)

        signal.signal(signal.SIGTERM, stop)


def main(descriptor: int) -> None:
    """Serve on an inherited socket until told to stop."""
    die_with_parent()
    with owner_only():
        Web(Settings.from_environment(), descriptor).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
