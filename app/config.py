"""Settings of one Loupe home, from the environment and the command line's flags."""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from pipelines.kernels.package import MAX_FILE_BYTES, MAX_PACKAGE_BYTES

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"

MAX_SOURCE_BYTES = MAX_FILE_BYTES
# JSON may write a byte of source as six characters.
MAX_JSON_BYTES = 6 * MAX_PACKAGE_BYTES + (256 << 10)
# The form without JavaScript has one file, percent-encoded at worst.
MAX_FORM_BYTES = 3 * MAX_SOURCE_BYTES + (64 << 10)
MAX_UPLOAD_BYTES = 512 << 20
# A parsed manifest takes several times its size in memory; that of 300 passes is 0.1 MB.
MAX_UPLOAD_MANIFEST = 8 << 20
CACHE_BYTES = 2 << 30


_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*")


class HomeError(Exception):
    """The folder that holds Loupe's data cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Settings:
    """Where data lives, what is served, and who may ask."""

    home: Path
    host: str = "127.0.0.1"
    port: int = 8000
    trust_code: bool = False
    no_login: bool = False
    allowed_hosts: tuple[str, ...] = field(default=())

    @classmethod
    def from_environment(
        cls,
        *,
        home: Path | None = None,
        host: str | None = None,
        port: int | None = None,
        trust_code: bool = False,
        no_login: bool = False,
    ) -> Settings:
        """Read ``LOUPE_HOME``, ``_HOST``, ``_PORT``, ``_ALLOWED_HOSTS``, ``_TRUST_CODE``, ``_NO_LOGIN``; flags win.

        Raises:
            ValueError: ``LOUPE_PORT`` is not a port number, or ``LOUPE_ALLOWED_HOSTS`` holds what is no name.
        """
        env = os.environ
        if port is None:
            text = env.get("LOUPE_PORT", "8000")
            if not text.isdecimal() or not 0 <= int(text) <= 65535:
                raise ValueError(f"LOUPE_PORT is {text!r}, which is not a port between 0 and 65535")
            port = int(text)
        allowed = [allowed_host(text) for text in env.get("LOUPE_ALLOWED_HOSTS", "").replace(",", " ").split()]
        return cls(
            home=(home or Path(env.get("LOUPE_HOME") or "~/.loupe")).expanduser().absolute(),
            host=host or env.get("LOUPE_HOST") or "127.0.0.1",
            port=port,
            trust_code=trust_code or env.get("LOUPE_TRUST_CODE", "") == "1",
            no_login=no_login or env.get("LOUPE_NO_LOGIN", "") == "1",
            allowed_hosts=tuple(allowed),
        )

    def prepare(self) -> None:
        """Create the home's folders, and let nobody but their owner read what is Loupe's, also in a folder that exists.

        Raises:
            HomeError: that cannot be.
        """
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path in (self.blobs, self.added, self.cache, self.slots, self.uploads):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                _keep_others_out(path)
            if not os.access(self.home, os.W_OK):
                raise PermissionError(errno.EACCES, "it cannot be written to")
            for file in (*self.home.glob("loupe.*"), *self.home.glob("queue.*")):
                _keep_others_out(file)
        except OSError as error:
            words = f"{self.home} cannot hold Loupe's data: {error.strerror}; name another folder in LOUPE_HOME"
            raise HomeError(words) from None

    @property
    def sandbox(self) -> Path:
        """The folder of ``slots`` itself, where that is a link to a faster disk."""
        return self.slots.resolve()

    @property
    def database(self) -> Path:
        """The SQLite file that holds the truth about traces and jobs."""
        return self.home / "loupe.db"

    @property
    def queue(self) -> Path:
        """Huey's own SQLite file; it can be lost without losing a job."""
        return self.home / "queue.db"

    @property
    def blobs(self) -> Path:
        """Trace files by content."""
        return self.home / "blobs"

    @property
    def added(self) -> Path:
        """Files of LLVM's passes by the hash of their heads."""
        return self.home / "added"

    @property
    def cache(self) -> Path:
        """What can be computed again; bounded, and safe to delete."""
        return self.home / "cache"

    @property
    def slots(self) -> Path:
        """Directories of running compilations."""
        return self.home / "slots"

    @property
    def uploads(self) -> Path:
        """Uploads that are being received."""
        return self.home / "uploads"


def allowed_host(text: str) -> str:
    """Return a name of ``LOUPE_ALLOWED_HOSTS`` as requests are compared with it; raise ValueError for what is none."""
    name = text.lower().removeprefix("[").removesuffix("]")
    if _is_address(name):
        return str(ip_address(name))
    if _HOST.fullmatch(name):
        return name
    bare = text.partition("://")[2] or text
    bare = bare.partition("/")[0].rstrip(".").rpartition("@")[2]
    bare = bare.partition(":")[0].rstrip(".") if not bare.startswith("[") else bare.partition("]")[0] + "]"
    advice = f"; write {bare}" if _HOST.fullmatch(bare.lower()) or _is_address(bare.strip("[]")) else ""
    raise ValueError(
        f"LOUPE_ALLOWED_HOSTS holds {text!r}, which is no host name: no scheme, port, path or dot at its end{advice}"
    )


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _keep_others_out(path: Path) -> None:
    """Take every right from all but the owner; what a link points to is not ours to change."""
    if not path.is_symlink() and (mode := path.stat().st_mode) & 0o077:
        path.chmod(stat.S_IMODE(mode) & 0o700)
