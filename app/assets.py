"""Built front-end files: their names carry a hash of their content, so clients keep them for good."""

from __future__ import annotations

import json
import re
from mimetypes import guess_type
from pathlib import Path

from flask import Blueprint, Flask, Response, request, send_from_directory, url_for

from app import wire
from app.errors import ApiError

DIST = Path(__file__).resolve().parent.parent / "static" / "dist"

# As the bundler writes it: eight characters before the ending.
_HASHED = re.compile(r"-[A-Z0-9]{8}\.[a-z0-9.]+$")

blueprint = Blueprint("assets", __name__)


class Assets:
    """``manifest.json`` by plain name; read again when a build replaces it."""

    def __init__(self, dist: Path = DIST) -> None:
        self.dist = dist
        self._read: tuple[float, dict[str, str]] = (0.0, {})

    def file(self, name: str) -> str:
        """Return the built file's name; raise ApiError 503 where the front end is not built."""
        manifest = self.dist / "manifest.json"
        try:
            changed = manifest.stat().st_mtime
            if changed != self._read[0]:
                self._read = (changed, json.loads(manifest.read_text(encoding="utf-8")))
            return self._read[1][name]
        except (OSError, KeyError, ValueError):
            raise ApiError(503, f"The front end is not built: {name} is missing. Run make setup.") from None

    def text(self, name: str) -> str:
        """Return a built script or style; raise ApiError 503 where the front end is not built."""
        try:
            return (self.dist / self.file(name)).read_text(encoding="utf-8")
        except OSError:
            raise ApiError(503, f"The front end is not built: {name} is missing. Run make setup.") from None

    @property
    def version(self) -> float:
        """When the front end was built."""
        try:
            return (self.dist / "manifest.json").stat().st_mtime
        except OSError:
            return 0.0


assets = Assets()


def register(app: Flask) -> None:
    """Give templates ``asset(name)``."""

    def asset(name: str) -> str:
        return url_for("assets.read", name=assets.file(name))

    app.jinja_env.globals["asset"] = asset
    app.register_blueprint(blueprint)


@blueprint.get("/static/<path:name>")
def read(name: str) -> Response:
    """Serve a built file, compressed where the build made it so."""
    zipped = name + ".gz"
    compressed = request.accept_encodings.quality("gzip") > 0 and (DIST / zipped).is_file()
    response = send_from_directory(
        DIST, zipped if compressed else name, conditional=True, max_age=31536000, mimetype=guess_type(name)[0]
    )
    if compressed:
        response.headers["Content-Encoding"] = "gzip"
    response.vary.add("Accept-Encoding")
    kept = wire.IMMUTABLE if _HASHED.search(name) else wire.REVALIDATE
    response.headers["Cache-Control"] = kept.replace("private", "public")
    return response
