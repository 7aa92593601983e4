"""Rounds over a real database that is killed in their middle: all is told once, and in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pytest
from sqlalchemy import Connection, Engine, text

from service.alerting.alerts.outbox_row import Outgoing
from service.storage.database.engine import Database
from service.storage.delivery.enqueuing import post
from service.storage.rounds.store import PostgresStore
from tests.factories import CLUSTER_ID
from tests.fakes import MemoryStore
from tests.unit.service.rounds.test_finding_state import LIFE
from tests.unit.service.rounds.watched import Watched

pytestmark = pytest.mark.integration


@dataclass
class Killer:
    """Ends the connection of a transaction that has everything but its COMMIT."""

    left: int
    killed: list[int] = field(default_factory=list)

    def __call__(
        self, connection: Connection, outgoing: Sequence[Outgoing], cluster: int, now: datetime
    ) -> None:
        post(connection, outgoing, cluster, now)
        self.left -= 1
        if self.left == 0:
            self.killed.append(cluster)
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))


def told(engine: Engine) -> list[tuple[str, bytes]]:
    with engine.connect() as connection:
        found = connection.execute(text("SELECT webhook_id, body FROM outbox ORDER BY id"))
        return [(row.webhook_id, row.body) for row in found]


@pytest.mark.parametrize("killed_at", [1, 2, 3, 4])
def test_a_database_that_is_killed_in_a_round_loses_and_doubles_nothing(
    database: Engine, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    memory = MemoryStore()
    unbroken, broken = (
        Watched(memory),
        Watched(PostgresStore(lambda: Database(engine=database, server=None))),
    )
    killer = Killer(killed_at)
    monkeypatch.setattr("service.storage.alerting.alert_rows.post", killer)
    for seconds, said in LIFE:
        unbroken.round(seconds, said)
        broken.round(seconds, said)
        if not broken.round_writer.is_storing:
            broken.wait(seconds + 0.1)  # nothing is told now
            broken.seconds = seconds + 5
            broken.round_writer.flush()  # the next try finds the database back
    assert killer.killed
    assert told(database) == [(one.webhook_id, one.body) for one in memory.outbox]
    loaded = PostgresStore(lambda: Database(engine=database, server=None)).load(
        "default",
        broken.round_writer._writer,  # noqa: SLF001 - the same process reads again
    )
    assert loaded.alerting[CLUSTER_ID] == broken.alerting.state(CLUSTER_ID)
    assert loaded.alerting[CLUSTER_ID] == unbroken.alerting.state(CLUSTER_ID)
