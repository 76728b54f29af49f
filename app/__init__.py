"""The Flask server: HTTP in, HTML and JSON out. It never imports a compiler."""

from __future__ import annotations

from flask import Flask

from app import (
    about,
    addenda,
    assets,
    compiles,
    errors,
    events,
    examples,
    exports,
    groups,
    home,
    kernels,
    openapi,
    packages,
    security,
    targets,
    texts,
    traces,
    wire,
)
from app.config import MAX_JSON_BYTES, TEMPLATES, Settings
from app.event_log import Watcher
from app.services import EXTENSION, Services

NOUNS = (
    home,
    traces,
    texts,
    addenda,
    groups,
    exports,
    compiles,
    packages,
    kernels,
    targets,
    examples,
    events,
    about,
    openapi,
)


def create_app(settings: Settings | None = None) -> Flask:
    """Return the app over one home; the environment says which when no settings are given."""
    settings = settings or Settings.from_environment()
    app = Flask("loupe", template_folder=str(TEMPLATES), static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_JSON_BYTES
    app.json.sort_keys = False  # type: ignore[attr-defined]  # declared on Flask's default provider only
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    opened = Services.open(settings)
    app.extensions[EXTENSION] = opened
    app.extensions[events.WATCHER] = Watcher(opened.database)
    errors.register(app)
    app.after_request(wire.compress)  # runs after what is registered later
    security.register(app, settings)
    assets.register(app)
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
    return app
