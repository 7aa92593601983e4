"""Two services on one database: who stores is told to the other, and taken over whole or not at all."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from rules.errors import StoreError
from rules.verdict import Verdict
from service.storage.database.engine import Database
from service.storage.rounds import clusters
from service.storage.rounds.rounds import store_rounds
from service.storage.rounds.store import PostgresStore
from tests.integration.storage.given import Story

pytestmark = pytest.mark.integration

OK, BREACH = Verdict.OK, Verdict.BREACH
NEWER = UUID(int=9)


@pytest.fixture
def store(database: Engine) -> PostgresStore:
    return PostgresStore(lambda: Database(engine=database, server=None))


def test_who_was_replaced_is_told_since_when(database: Engine, store: PostgresStore) -> None:
    story = Story(database)
    store_rounds(database, [story.round({"a": BREACH})])
    store.load("default", NEWER)
    with database.connect() as link:
        since = link.execute(text("SELECT claimed_at FROM cluster")).scalar_one()
    told = f"in this database since {since.isoformat(timespec='seconds')}"
    with pytest.raises(StoreError) as caught:
        store_rounds(database, [story.round({"a": OK})])
    assert told in str(caught.value)


def test_a_service_that_cannot_read_what_is_kept_takes_it_from_nobody(
    database: Engine, store: PostgresStore
) -> None:
    story = Story(database)
    store_rounds(database, [story.round({"a": BREACH})])
    with database.begin() as link:
        link.execute(text("UPDATE checkpoint SET format = 99"))
    with pytest.raises(StoreError, match="format 99"):
        store.load("default", NEWER)
    store_rounds(database, [story.round({"a": OK})])


def test_a_round_that_comes_while_another_service_reads_waits_and_is_rejected(
    database: Engine,
) -> None:
    story = Story(database)
    store_rounds(database, [story.round({"a": BREACH})])
    told: list[StoreError] = []

    def stores() -> None:
        with pytest.raises(StoreError) as caught:
            store_rounds(database, [story.round({"a": OK})])
        told.append(caught.value)

    late = threading.Thread(target=stores)
    with clusters.claim(database, "default", NEWER):
        late.start()
        late.join(0.3)
        assert late.is_alive(), "it waits its turn"
    late.join(10)
    assert [error.retryable for error in told] == [False]
