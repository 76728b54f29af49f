import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import select, text, update
from sqlalchemy.exc import IntegrityError

from app.config import HomeError, Settings
from app.database import HEAD, MIGRATIONS, Database, look, migrate
from app.models import AddendumRow, Base, Group, Trace
from app.services import Services


def test_migrated_schema_is_that_of_the_models(services: Services) -> None:
    with services.database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_head_is_the_newest_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_processes_that_migrate_at_once_agree(tmp_path: Path) -> None:
    path = tmp_path / "loupe.db"
    code = f"from pathlib import Path; from app.database import migrate; migrate(Path({str(path)!r}))"
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": str(root)}
    started = [subprocess.Popen([sys.executable, "-c", code], env=env) for _ in range(3)]
    assert [process.wait(60) for process in started] == [0, 0, 0]
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]
    connection.close()


def test_database_of_a_newer_version_is_refused(settings: Settings) -> None:
    settings.prepare()
    migrate(settings.database)
    connection = sqlite3.connect(settings.database)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    with pytest.raises(HomeError, match="cannot be opened by this version of Loupe"):
        migrate(settings.database)


def test_connections_wait_for_locks_and_keep_foreign_keys(services: Services) -> None:
    with services.database.read() as session:
        found = [
            session.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert found == ["wal", 1, 1]


@pytest.mark.parametrize("name", ["a?b", "a%20b", "a#b", "a b", "é", "a?mode=memory", "%(here)s"])
def test_any_path_can_hold_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    home = tmp_path / name
    services = Services.open(Settings(home=home))
    with services.database.write() as session:
        session.add(Trace(id="t" * 22, target="sm_80"))
    services.queue.send("t" * 22)
    services.close()
    assert {"loupe.db", "queue.db", "blobs"} <= {path.name for path in home.iterdir()}
    assert [path.name for path in tmp_path.iterdir()] == [name]
    monkeypatch.chdir(tmp_path)
    relative = Services.open(Settings(home=Path(name)))
    monkeypatch.chdir(home)
    with relative.database.read() as session:
        assert session.get(Trace, "t" * 22)
    relative.close()
    with look(home / "loupe.db") as session:
        assert session.get(Trace, "t" * 22)


def test_two_writers_take_turns(services: Services) -> None:
    first = services.database.write()
    second = Database(services.settings.database)
    with first as session:
        session.add(Group(request={"source": ""}))
        session.flush()
        with second.read() as reader:
            assert reader.execute(select(Group)).all() == []
    with second.write() as writer:
        assert len(writer.execute(select(Group)).all()) == 1
    second.close()


COLUMNS = [column.name for column in Trace.__table__.columns]
# A value for each type that no row of these tests has.
OTHER: dict[type, object] = {str: "other", float: 1.5, int: 7, bool: True, object: {"other": 1}}


@pytest.fixture
def finished(services: Services) -> Services:
    """A home with a finished trace of each status in a group, one that runs, and an addendum."""
    with services.database.write() as session:
        session.add_all([Group(id=letter * 22, request={"source": letter}) for letter in "gh"])
        session.flush()
        for status, letter in (("ok", "o"), ("failed", "f")):
            session.add(Trace(id=letter * 22, group_id="g" * 22, status=status, target=status, content="a" * 64))
        session.add(Trace(id="r" * 22, group_id="h" * 22, status="running", target="sm_80"))
        session.add(AddendumRow(content="a" * 64, kind="times", revision=1, data={}))
    return services


@pytest.mark.parametrize("status", ["ok", "failed"])
@pytest.mark.parametrize("column", COLUMNS)
def test_finished_trace_never_changes_but_in_owner_and_visibility(finished: Services, status: str, column: str) -> None:
    kind = Trace.__table__.columns[column].type.python_type
    value = "h" * 22 if column == "group_id" else OTHER[kind]
    change = update(Trace).where(Trace.status == status).values({column: value})
    if column in ("owner", "visibility"):
        with finished.database.write() as session:
            session.execute(change)
        return
    with pytest.raises(IntegrityError, match="a finished trace never changes"), finished.database.write() as session:
        session.execute(change)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM traces WHERE status = 'ok'",
        "DELETE FROM traces WHERE status = 'failed'",
        "DELETE FROM traces",
        "DELETE FROM groups WHERE id LIKE 'g%'",
        "DELETE FROM groups",
        "DELETE FROM addenda",
        "UPDATE addenda SET data = '1'",
        "UPDATE groups SET request = '{}' WHERE id LIKE 'g%'",
        "INSERT OR REPLACE INTO addenda VALUES ('" + "a" * 64 + "', 'times', 1, '1', 0)",
    ],
)
def test_what_a_permalink_shows_is_never_deleted(finished: Services, statement: str) -> None:
    with pytest.raises(IntegrityError, match="a finished trace never changes"), finished.database.write() as session:
        session.execute(text(statement))


def test_what_is_not_finished_may_go(finished: Services) -> None:
    with finished.database.write() as session:
        session.execute(text("DELETE FROM traces WHERE status = 'running'"))
        session.execute(text("DELETE FROM groups WHERE id LIKE 'h%'"))
        assert session.query(Trace).count() == 2
