"""The database as the service uses it: opened when it answers, upgraded to this version's schema.

Every call may raise `StoreError`; a retryable one may succeed later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import Engine

from rules.errors import StoreError
from rules.open_findings import Identity, OpenFinding
from service.alerting.alerts.grouping import AlertingState
from service.runtime.clock import utc_now
from service.storage.alerting import alerts as alerting
from service.storage.alerting import pending_requests
from service.storage.alerting.pending_requests import NO_PENDING_REQUESTS, PendingRequests
from service.storage.database import running_role, schema
from service.storage.database.engine import Database
from service.storage.database.translate import translate_errors
from service.storage.findings import findings
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds import clusters
from service.storage.rounds.rounds import Round, Stored, store_rounds

OpenFindings = Mapping[Identity, OpenFinding]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loaded:
    """Stored state of the clusters that had one name."""

    cluster_id: str = ""  # of the one that was stored last; empty if none or never reported
    checkpoint: Checkpoint | None = None  # of that one
    open_findings: Mapping[str, OpenFindings] = field(default_factory=dict)  # by cluster id
    alerting: Mapping[str, AlertingState] = field(default_factory=dict)  # by cluster id
    damaged: Mapping[str, str] = field(default_factory=dict)  # cluster id -> what was left out
    requests: PendingRequests = NO_PENDING_REQUESTS  # for the cluster that was stored last


class PostgresStore:
    """Opens the database at the first call that needs it."""

    def __init__(
        self, open_: Callable[[], Database], *, on_mended: Callable[[], None] = lambda: None
    ) -> None:
        """`on_mended` is called after our own server had died and was restarted."""
        self._open = open_
        self._on_mended = on_mended
        self._database: Database | None = None
        self._is_closed = False  # final: a late call must not start a server again
        self._turn = threading.Lock()  # guards these two

    @property
    def engine(self) -> Engine:
        """Return the engine of the database.

        Raises:
            StoreError: it has not answered yet.
        """
        if self._database is None:
            raise StoreError("the database has not answered yet", retryable=True)
        return self._database.engine

    def load(self, name: str, writer: UUID) -> Loaded:
        """Claim and read what is stored under a cluster's name, after upgrading the schema."""
        engine = self._open_once().engine
        # The previous writer is rejected from here on, so that what is read stays valid; but a service
        # that cannot read it, and ends, does not take the clusters over.
        with clusters.claim(engine, name, writer):
            return _read(engine, name)

    def store(self, rounds: Sequence[Round]) -> Stored:
        """Store rounds in their order, all or none; storing one twice changes nothing."""
        try:
            return store_rounds(self.engine, rounds)
        except StoreError as exc:
            # Our own server is restarted if it died; for another one we can only wait.
            if not exc.retryable or not self._is_mended():
                raise
            self._on_mended()
            return store_rounds(self.engine, rounds)

    def close(self) -> None:
        """Close all connections, and stop the server if it is ours.

        Only the first call does: a second one returns at once, also while the first still waits for a
        server that does not stop, so that the second is not blocked beyond the limit of the first.
        """
        with self._turn:
            was_closed, self._is_closed = self._is_closed, True
        if not was_closed and self._database is not None:
            self._database.close()

    def _open_once(self) -> Database:
        if self._database is None:
            self._refuse_if_closed()
            database = self._open()
            try:
                running_role.require_upgradable(database.engine)
                schema.upgrade(database.engine)
                running_role.require_running(database.engine)
                self._take(database)
            except StoreError:
                database.close()
                raise
            return database
        return self._database

    def _take(self, database: Database) -> None:
        """Use a database from now on; raise if `close` was called meanwhile and could not close it."""
        with self._turn:
            self._refuse_if_closed()
            self._database = database

    def _is_mended(self) -> bool:
        return self._database is not None and not self._is_closed and self._database.mend()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise StoreError("the database is closed: the service is stopping", retryable=True)


def _read(engine: Engine, name: str) -> Loaded:
    rows = clusters.list_by_name(engine, name)
    if not rows:
        return Loaded()
    newest, key = rows[-1]
    open_ = {key.cluster_id: findings.load_open(engine, row) for row, key in rows}
    alerts = {
        key.cluster_id: alerting.load(engine, row, open_[key.cluster_id]) for row, key in rows
    }
    return Loaded(
        cluster_id=key.cluster_id,
        checkpoint=clusters.load_checkpoint(engine, newest),
        open_findings=open_,
        alerting={name: loaded.state for name, loaded in alerts.items()},
        damaged={name: loaded.error for name, loaded in alerts.items() if loaded.error is not None},
        requests=_pending_requests(
            engine, newest, alerts[key.cluster_id].state.observed_at or utc_now()
        ),
    )


def _pending_requests(engine: Engine, cluster: int, now: datetime) -> PendingRequests:
    with translate_errors("pending requests cannot be read"), engine.connect() as connection:
        stored = pending_requests.read(connection, cluster, now)
    return stored.parse()
