from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import create_app, workers
from app.config import Settings
from app.database import Database, migrate
from app.models import Trace
from app.services import EXTENSION, Services
from tests.app.capturing import Captured, capture
from tests.app.helpers import TOOLCHAIN, Built, Home, build, upload
from tests.conftest import EXAMPLES, ROOT


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
        options={
            "cuda": [
                {"name": "num_warps", "type": "int", "default": 4},
                {"name": "maxnreg", "type": "int", "default": None},
            ],
            "hip": [{"name": "num_warps", "type": "int", "default": 4}],
        },
    )
    with services.database.write() as session:
        worker = workers.register(session, "compile")
        workers.report(session, worker, "ready", facts=facts)
    return worker


@pytest.fixture
def file(tmp_path: Path, built: Built) -> Path:
    """The built trace as a file."""
    path = tmp_path / "scale.loupe"
    path.write_bytes(built.data)
    return path


@pytest.fixture(scope="session")
def softmax(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """``loupe compile`` as a user runs it, in a process of its own."""
    home = tmp_path_factory.mktemp("cli")
    command = [sys.executable, "-m", "app.cli", "compile", str(EXAMPLES / "softmax.py"), "--target", "sm_90", "--json"]
    env = {**os.environ, "LOUPE_HOME": str(home)}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=90, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    data = json.loads(ended.stdout)
    (manifest,) = data["traces"]
    assert [stage["name"] for stage in manifest["stages"]] == ["ttir", "ttgir", "llvm-dialect"]
    assert all(stage["passes"] for stage in manifest["stages"])
    assert {"ptx", "sass", "cubin", "llvm-ir"} <= {artifact["name"] for artifact in manifest["artifacts"]}
    database = Database(home / "loupe.db")
    with database.read() as session:
        (trace,) = session.query(Trace).all()
    database.close()
    assert trace.group_id == data["group"]
    return Home(home, data["group"], trace.id)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """A captured program: one kernel compiled twice, one launched, one autotuned."""
    folder = tmp_path_factory.mktemp("trained")
    return capture(folder, program=(sys.executable, "train.py", "a", "--json"))
