"""Alembic's entry: runs the revisions over the database that ``app.database.migrate`` names."""

from alembic import context
from sqlalchemy import create_engine, pool

from app.models import Base


def run() -> None:
    """Apply revisions in one transaction."""
    url = context.config.get_main_option("sqlalchemy.url")
    if url is None:
        raise RuntimeError("no database was named")
    engine = create_engine(url, poolclass=pool.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()


run()
