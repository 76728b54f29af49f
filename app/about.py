"""What serves this: versions, the toolchain's files, and how compilations are confined."""

from __future__ import annotations

import dataclasses
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from flask import Blueprint, Response, jsonify, render_template

from app import wire, workers
from app.api import Output, reply
from app.services import services
from pipelines.sandbox.model import Limits
from pipelines.trace import Toolchain

blueprint = Blueprint("about", __name__)

PACKAGES = ("triton", "flask", "gunicorn", "sqlalchemy", "huey", "pydantic", "zstandard")


class AboutReply(Output):
    """The state of a server. ``worker`` is starting, ready, refused (``message`` says why), stopped or absent.

    ``limits`` bound one compilation: seconds, bytes and counts.
    """

    version: str
    python: str
    system: str
    packages: dict[str, str]
    worker: str
    message: str | None
    toolchain: Toolchain | None
    confinement: dict[str, Any] | None
    limits: dict[str, int | float]


def load() -> AboutReply:
    """Return what is known of this server."""
    with services().database.read() as session:
        row, facts = workers.newest(session), workers.facts(session)
        state = "absent" if row is None else row.state if workers.is_alive(row) else "stopped"
    return AboutReply(
        version=_version("loupe") or "not installed",
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()}",
        packages={name: found for name in PACKAGES if (found := _version(name))},
        worker=state,
        message=row.message if row else None,
        toolchain=facts.toolchain if facts else None,
        confinement=facts.confinement if facts else None,
        limits=dataclasses.asdict(Limits()),
    )


@blueprint.get("/about")
def show() -> Response:
    """Serve the page. Context: ``about`` (AboutReply)."""
    response = Response(render_template("about/about.html", about=load()), mimetype="text/html")
    response.headers["Cache-Control"] = wire.REVALIDATE
    return response


@blueprint.get("/about.json")
def twin() -> Response:
    """Serve the page's data."""
    return reply(load())


@blueprint.get("/health")
def health() -> Response:
    """Say that this process answers and reaches its database."""
    with services().database.read() as session:
        workers.newest(session)
    return jsonify(status="ok")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
