from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import create_app, workers
from app.config import Settings
from app.database import migrate
from app.services import EXTENSION, Services
from tests.app.helpers import TOOLCHAIN, Built, build, upload


@pytest.fixture(scope="session")
def built(golden: Path) -> Built:
    return build(golden)


@pytest.fixture(scope="session")
def failed(golden: Path) -> Built:
    return build(golden, failed=True)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "loupe.db"
    migrate(path)
    return path


@pytest.fixture
def settings(tmp_path: Path, empty_database: Path) -> Settings:
    """A new home; its database is a copy, since migrating takes longer than most tests."""
    settings = Settings(home=tmp_path / "home")
    settings.prepare()
    shutil.copyfile(empty_database, settings.database)
    return settings


@pytest.fixture
def app(settings: Settings) -> Iterator[Flask]:
    app = create_app(settings)
    yield app
    app.extensions[EXTENSION].close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def services(app: Flask) -> Services:
    found: Services = app.extensions[EXTENSION]
    return found


@pytest.fixture
def stored(client: FlaskClient, built: Built) -> str:
    """The permalink of the built trace, uploaded."""
    return upload(client, built)


@pytest.fixture
def ready_worker(services: Services) -> str:
    """The id of a worker that is ready: this process, which lives."""
    facts = workers.Facts(
        toolchain=TOOLCHAIN,
        confinement={"files": "Landlock"},
        options=[{"name": "num_warps", "type": "int", "default": 4}],
    )
    with services.database.write() as session:
        worker = workers.register(session, "compile")
        workers.report(session, worker, "ready", facts=facts)
    return worker
