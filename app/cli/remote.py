"""A Loupe server that traces are sent to."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from urllib.parse import urlsplit

import click
from pydantic import BaseModel, ConfigDict, ValidationError

from app.cli.source import error_message
from app.config import MAX_UPLOAD_BYTES

TIMEOUT_SECONDS = 300
MAX_REPLY = 100_000

server_option = click.option(
    "--server", envvar="LOUPE_SERVER", metavar="URL", help="Server to send to, http://host:8000; or LOUPE_SERVER."
)


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    url: str
    content: str
    group: str | None = None


@dataclass(frozen=True)
class Sent:
    """A trace on a server: its permalink, and the group that it is in."""

    url: str
    group: str | None


class Server:
    """Sends trace files to one server."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
            raise click.UsageError(f"{address!r} is no server; write http://host:port")
        self._base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"

    def send(self, data: bytes, name: str, group: str | None = None) -> Sent:
        """Upload a trace file; ``group`` is the id of one, or ``new``.

        Raises:
            click.ClickException: the server cannot be reached, or refuses the file.
        """
        if len(data) > MAX_UPLOAD_BYTES:
            raise click.ClickException(f"{name} has {len(data) >> 20} MB; a server takes {MAX_UPLOAD_BYTES >> 20} MB")
        address = f"{self._base}/api/v1/traces" + (f"?group={group}" if group else "")
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked
            address, data, {"Content-Type": "application/octet-stream"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - as above
                reply = _Reply.model_validate_json(response.read(MAX_REPLY))
        except urllib.error.HTTPError as error:
            with error:
                said = error_message(error)
            raise click.ClickException(f"{self._base} refuses {name} ({error.code}): {said}") from None
        except (ValidationError, json.JSONDecodeError):
            raise click.ClickException(f"{self._base} did not answer as a Loupe server does; check the URL") from None
        except OSError as error:
            reason = getattr(error, "reason", None) or error.strerror or error
            raise click.ClickException(f"{self._base} cannot be reached: {reason}; is loupe serve running?") from None
        return Sent(f"{self._base}{reply.url}", reply.group)

    def group_url(self, group: str) -> str:
        """Return a group's page."""
        return f"{self._base}/g/{group}"
