"""What a baseline run needs from the database: the windows of open alerts, and publishing its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Engine

from service.settings import Settings
from service.storage.baselines.alert_windows import AlertWindow, alert_windows
from service.storage.baselines.publishing import Published, publish
from service.storage.baselines.run_files import RunPlace
from service.storage.database import running_role, schema
from service.storage.database.opening import has_database, open_at_head, open_store


class StoredBaselineRuns:
    """A database whose schema is at head; every call may raise `StoreError`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def windows(self, cluster: str, begin: datetime, end: datetime) -> Sequence[AlertWindow]:
        """Return the windows of alerts between two times."""
        return alert_windows(self._engine, cluster, begin, end)

    def publish(self, place: RunPlace, cluster: str, now: datetime) -> Published:
        """Load a run and make it the current one; publishing it again changes nothing."""
        return publish(self._engine, place, cluster=cluster, now=now)


@contextmanager
def open_run_store(settings: Settings) -> Iterator[StoredBaselineRuns]:
    """Open the configured database; if there is none, create that of the data directory, as `serve` does.

    Raises:
        StoreError: it is away, has another schema, or its role may not publish.
    """
    if not has_database(settings):
        settings.service.data_directory().mkdir(parents=True, exist_ok=True)
        database = open_store(settings)
        try:
            schema.upgrade(database.engine)
        finally:
            database.close()
    with open_at_head(settings) as engine:
        running_role.require_running(engine)
        yield StoredBaselineRuns(engine)
