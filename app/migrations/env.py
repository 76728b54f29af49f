"""Alembic's entry: runs the revisions over the database that ``app.database.migrate`` names, all or none."""

from pathlib import Path

from alembic import context

from app.database import Database
from app.models import Base


def run() -> None:
    """Apply revisions in one transaction."""
    database = Database(Path(context.config.attributes["path"]))
    with database.engine.execution_options(immediate=True).begin() as connection:
        context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
        context.run_migrations()
    database.close()


run()
