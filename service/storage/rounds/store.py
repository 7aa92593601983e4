"""The database as the service uses it: opened when it answers, brought to this version's schema.

Every call may raise `StoreError`; a retryable one is worth another try later.
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
from service.alerting.alerts.state import AlertingState
from service.runtime.clock import utc_now
from service.storage.alerting import alerts as alerting
from service.storage.alerting import pending_requests
from service.storage.alerting.pending_requests import NO_PENDING_REQUESTS, PendingRequests
from service.storage.database import schema
from service.storage.database.engine import Database
from service.storage.database.translate import translated
from service.storage.findings import findings
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds import checkpoints, clusters
from service.storage.rounds.rounds import Round, Stored, store_rounds

OpenFindings = Mapping[Identity, OpenFinding]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loaded:
    """What an earlier process left of the clusters that had one name."""

    cluster_id: str = ""  # of the one that was stored last; empty if none or never told
    checkpoint: Checkpoint | None = None  # of that one
    open_findings: Mapping[str, OpenFindings] = field(default_factory=dict)  # by cluster id
    alerting: Mapping[str, AlertingState] = field(default_factory=dict)  # by cluster id
    damaged: Mapping[str, str] = field(default_factory=dict)  # cluster id -> what of it is left out
    requests: PendingRequests = (
        NO_PENDING_REQUESTS  # what persons want of the cluster that was stored last
    )


class PostgresStore:
    """Opens the database at the first call that needs it."""

    def __init__(
        self, open_: Callable[[], Database], *, on_mended: Callable[[], None] = lambda: None
    ) -> None:
        """`on_mended` is called after our own server had died and was started again."""
        self._open = open_
        self._on_mended = on_mended
        self._database: Database | None = None
        self._is_closed = False  # for good: a call that comes late must not start a server again
        self._turn = threading.Lock()  # of who changes these two

    @property
    def engine(self) -> Engine:
        """Return the way to the database.

        Raises:
            StoreError: it has not answered yet.
        """
        if self._database is None:
            raise StoreError("the database has not answered yet", retryable=True)
        return self._database.engine

    def load(self, name: str, writer: UUID) -> Loaded:
        """Claim and read what is kept under a cluster's name; the schema is brought up before."""
        engine = self._opened().engine
        # Whoever kept it before is rejected from here on, so that what is read stays true; but a
        # service that cannot read it, and ends, takes it from nobody.
        with clusters.claimed(engine, name, writer):
            return _read(engine, name)

    def store(self, rounds: Sequence[Round]) -> Stored:
        """Store rounds in their order, all or none; storing one twice changes nothing."""
        try:
            return store_rounds(self.engine, rounds)
        except StoreError as exc:
            # A server of our own that died is started again; another one we can only wait for.
            if not exc.retryable or not self._is_mended():
                raise
            self._on_mended()
            return store_rounds(self.engine, rounds)

    def close(self) -> None:
        """Close all connections, and stop the server if it is ours.

        Only the first call does: another one returns at once, also while the first still waits for
        a server that does not stop, so that who gave the first a limit is not held by a second.
        """
        with self._turn:
            was_closed, self._is_closed = self._is_closed, True
        if not was_closed and self._database is not None:
            self._database.close()

    def _opened(self) -> Database:
        if self._database is None:
            self._refuse_if_closed()
            database = self._open()
            try:
                schema.upgrade(database.engine)
                self._take(database)
            except StoreError:
                database.close()
                raise
            return database
        return self._database

    def _take(self, database: Database) -> None:
        """Use a database from now on, unless `close` came meanwhile: it could not close this one."""
        with self._turn:
            self._refuse_if_closed()
            self._database = database

    def _is_mended(self) -> bool:
        return self._database is not None and not self._is_closed and self._database.mend()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise StoreError("the database is closed: the service ends", retryable=True)


def _read(engine: Engine, name: str) -> Loaded:
    known = clusters.list_by_name(engine, name)
    if not known:
        return Loaded()
    newest, key = known[-1]
    open_ = {key.cluster_id: findings.load_open(engine, row) for row, key in known}
    alerts = {
        key.cluster_id: alerting.load(engine, row, open_[key.cluster_id]) for row, key in known
    }
    return Loaded(
        cluster_id=key.cluster_id,
        checkpoint=checkpoints.load(engine, newest),
        open_findings=open_,
        alerting={name: one.state for name, one in alerts.items()},
        damaged={name: one.error for name, one in alerts.items() if one.error is not None},
        requests=_wanted(engine, newest, alerts[key.cluster_id].state.observed_at or utc_now()),
    )


def _wanted(engine: Engine, cluster: int, now: datetime) -> PendingRequests:
    with translated("what persons asked for cannot be read"), engine.connect() as connection:
        return pending_requests.read(connection, cluster, now)
