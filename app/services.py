"""What views and jobs share: the settings, the database, the stores and the queue of one home."""

from __future__ import annotations

from dataclasses import dataclass

from flask import current_app

from app.analyses import Analyses
from app.blobs import AddedStore, BlobStore
from app.cache import DiskCache
from app.compile_queue import CompileQueue
from app.config import CACHE_BYTES, Settings
from app.database import Database, migrate

EXTENSION = "loupe"


@dataclass(frozen=True)
class Services:
    """The parts of one home, opened once a process."""

    settings: Settings
    database: Database
    blobs: BlobStore
    added: AddedStore
    cache: DiskCache
    analyses: Analyses
    queue: CompileQueue

    @classmethod
    def open(cls, settings: Settings) -> Services:
        """Prepare the home, migrate its database and open the stores; connections are made when first used."""
        settings.prepare()
        migrate(settings.database)
        blobs, added = BlobStore(settings.blobs), AddedStore(settings.added)
        cache = DiskCache(settings.cache, limit=CACHE_BYTES)
        return cls(
            settings=settings,
            database=Database(settings.database),
            blobs=blobs,
            added=added,
            cache=cache,
            analyses=Analyses(blobs, added, cache),
            queue=CompileQueue(settings.queue),
        )

    def close(self) -> None:
        """Close what is open."""
        self.database.close()
        self.queue.close()


def services() -> Services:
    """Return the services of the app that handles the current request."""
    found = current_app.extensions[EXTENSION]
    assert isinstance(found, Services)  # noqa: S101 - narrows Flask's untyped registry
    return found
