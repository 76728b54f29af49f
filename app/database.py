"""The engine, its transactions, and the migrations that run at start."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.orm import Session

from app.config import HomeError

HEAD = "0002"
MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_SECONDS = 10


class Database:
    """Short sessions over one SQLite file in WAL mode."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine = create_engine(
            URL.create("sqlite", database=str(path.absolute())),
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
            pool_size=16,
            max_overflow=64,
        )
        event.listen(self.engine, "connect", _prepare)
        event.listen(self.engine, "begin", _begin)
        self._writing = self.engine.execution_options(immediate=True)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session that sees one moment of the database; what it changes is dropped."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session that holds the write lock from its first statement and commits at the end."""
        with Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        """Close pooled connections."""
        self.engine.dispose()


def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
    # BEGIN is sent by _begin: sqlite3's own implicit one is deferred, and upgrading it fails at once under contention.
    connection.isolation_level = None
    # Without recursive triggers a REPLACE would delete a row unasked.
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "foreign_keys=ON",
        "recursive_triggers=ON",
        f"busy_timeout={BUSY_SECONDS * 1000}",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def migrate(path: Path) -> None:
    """Bring the database at ``path`` to the newest revision; safe from several processes at once.

    Raises:
        HomeError: the file is no database, or was made by a newer Loupe.
    """
    if _revision(path) == HEAD:
        return
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _upgrade(path)


def _upgrade(path: Path) -> None:
    # Alembic takes 0.15 s to import, and a start rarely has anything to migrate.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["path"] = path
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise HomeError(f"{path} cannot be opened by this version of Loupe: {error}") from None


@contextmanager
def look(path: Path) -> Iterator[Session]:
    """Open a session that reads an existing database and writes nothing, so that a home may be read-only.

    Raises:
        HomeError: the file is no database, or another version of Loupe made it.
    """
    if _revision(path) != HEAD:
        raise HomeError(f"{path} was made by another version of Loupe; start loupe serve once to bring it up to date")
    engine = create_engine("sqlite://", creator=lambda: _read_only(path))
    try:
        with Session(engine, expire_on_commit=False) as session:
            yield session
    finally:
        engine.dispose()


def _read_only(path: Path) -> sqlite3.Connection:
    """Connect for reading.

    In WAL mode even a reader needs a file beside the database. Where that cannot be made nobody writes either, so what
    is in the database itself is all there is.
    """
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(address, timeout=BUSY_SECONDS, uri=True)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").close()
    except sqlite3.Error as error:
        connection.close()
        if not isinstance(error, sqlite3.OperationalError):
            raise
        connection = sqlite3.connect(f"{address}&immutable=1", uri=True)
    return connection


def _revision(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        with closing(_read_only(path)) as connection:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError:
        return None
    except sqlite3.DatabaseError as error:
        raise HomeError(f"{path} cannot be read: {error}; move it away to start with an empty one") from None
    return str(row[0]) if row else None
