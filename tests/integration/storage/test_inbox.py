"""The inbox of log lines on a real database: what is added is read once, in order, by its reader."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest
from sqlalchemy import Engine, text

from rules.errors import StoreError
from service.observe.log_inbox import remove_read
from service.runtime.clock import wait_until
from service.storage.formats.checkpoint import Checkpoint
from service.storage.formats.log import ParsedLines
from service.storage.rounds.clusters import ClusterKey
from service.storage.rounds.inbox import (
    KEPT_READ,
    SILENT,
    NewDelivery,
    StoredInbox,
    WaitingLines,
)
from service.storage.rounds.rounds import store_rounds
from tests.factories import CLUSTER_ID, NOON
from tests.integration.storage.given import made_round
from tests.integration.storage.given_lines import (
    MUCH,
    add,
    delivery,
    event,
    offsets,
    read,
    stream,
)

pytestmark = pytest.mark.integration

SECOND: Final = timedelta(seconds=1)
WAITING: Final = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")


@pytest.fixture
def inbox(database: Engine) -> StoredInbox:
    return StoredInbox(lambda: database, "default")


def test_another_cluster_has_another_inbox(inbox: StoredInbox, database: Engine) -> None:
    other = StoredInbox(lambda: database, "other")
    add(inbox, delivery(1, key="k"))
    with other.turn() as turn:
        assert turn.find_delivery("k") is None
        assert turn.waiting(0) == 0
        assert turn.states(["broker-1"]) == ({}, 0)
    assert read(other) == WaitingLines(parsed=(), last_id=None, is_all=True, sources=())
    other.remove_read(MUCH, NOON + 2 * SILENT)
    assert offsets(read(inbox)) == [1]


def test_nothing_is_seen_before_what_has_a_smaller_id(inbox: StoredInbox, database: Engine) -> None:
    second = threading.Thread(target=lambda: add(inbox, delivery(2)))
    with inbox.turn() as turn:
        turn.add(delivery(1))
        second.start()
        with database.connect() as connection:
            assert wait_until(
                lambda: connection.execute(WAITING).scalar_one() == 1, timeout_seconds=180
            )
        assert offsets(read(inbox)) == [], "the second waits for the first to be committed"
    second.join(10)
    assert offsets(read(inbox)) == [1, 2]


def test_writers_at_once_lose_nothing_for_a_reader_that_goes_on(inbox: StoredInbox) -> None:
    def write(first: int) -> None:
        add(inbox, *(delivery(first + number) for number in range(20)))

    writers = [threading.Thread(target=write, args=(100 * number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    seen: list[int] = []
    after = 0
    while any(writer.is_alive() for writer in writers) or len(seen) < 80:
        found = read(inbox, after, rows=3)
        seen += offsets(found)
        after = found.last_id or after
    assert sorted(seen) == sorted(100 * n + m for n in range(4) for m in range(20))


def test_what_a_log_may_hold_is_stored(inbox: StoredInbox) -> None:
    odd = 'nul \0 surrogate \ud800 quote " backslash \\ percent %s :name'
    one = event(1, topic=odd)
    new = delivery()
    given = NewDelivery(
        received_at=new.received_at,
        key=None,
        digest="d",
        counts=new.counts,
        parsed=ParsedLines(events=(one,), sources=()),
        streams=[stream(name="a\n1\nserver.log", source="ä %s :x")],
    )
    add(inbox, given)
    found = read(inbox)
    assert found.parsed[0].events == (one,)
    assert [source.name for source in found.sources] == ["ä %s :x"]


def test_what_was_read_goes_after_an_hour(inbox: StoredInbox) -> None:
    old, new = NOON, NOON + SECOND
    add(inbox, delivery(1, received_at=old), delivery(2, received_at=old))
    add(inbox, delivery(3, received_at=new), delivery(4, received_at=old))
    third = read(inbox, rows=3).last_id
    assert third is not None
    assert inbox.remove_read(third, NOON + KEPT_READ) == 0, "a repetition must be known for an hour"
    assert inbox.remove_read(third, NOON + KEPT_READ + SECOND) == 2
    assert offsets(read(inbox)) == [3, 4]
    assert inbox.remove_read(0, NOON + 99 * KEPT_READ) == 0, "no stored round has read any"
    assert inbox.remove_read(third, NOON + 2 * KEPT_READ) == 1
    assert offsets(read(inbox)) == [4], "it waits for a round, however old it is"


def store_position(engine: Engine, position: str, cluster_id: str = CLUSTER_ID) -> None:
    """Store the first round of a cluster, which has read so far."""
    kept = made_round(ClusterKey("default", cluster_id), 1, [], NOON)
    checkpoint = Checkpoint(log_positions={"http": position, "files": "99"})
    store_rounds(engine, [replace(kept, checkpoint=checkpoint)])


def test_only_what_a_stored_round_has_read_is_removed(inbox: StoredInbox, database: Engine) -> None:
    add(inbox, *(delivery(number) for number in range(3)))
    late = NOON + 2 * KEPT_READ
    assert (inbox.stored_position("http"), remove_read(inbox, late)) == (None, 0)
    store_position(database, "2")
    assert (inbox.stored_position("http"), remove_read(inbox, late)) == ("2", 2)
    assert offsets(read(inbox)) == [2]


def test_a_position_that_is_none_of_ours_removes_nothing(
    inbox: StoredInbox, database: Engine
) -> None:
    add(inbox, delivery(1))
    store_position(database, "damaged")
    assert remove_read(inbox, NOON + 2 * KEPT_READ) == 0


def test_a_stream_that_is_silent_for_a_day_is_forgotten(inbox: StoredInbox) -> None:
    add(inbox, delivery(1, received_at=NOON, streams=[stream("a")]))
    add(inbox, delivery(1, received_at=NOON + SECOND, streams=[stream("b")]))
    inbox.remove_read(0, NOON + SILENT + SECOND)
    assert [one.name for one in read(inbox).sources] == ["b"]


def test_more_than_a_batch_goes_in_several(
    inbox: StoredInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.storage.rounds.inbox.BATCH", 2)
    add(inbox, *(delivery(number) for number in range(5)))
    assert inbox.remove_read(MUCH, NOON + 2 * KEPT_READ) == 5


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda inbox: add(inbox, delivery(1)), "log lines cannot be stored"),
        (read, "log lines cannot be read"),
        (lambda inbox: inbox.remove_read(1, NOON), "log lines that were read cannot be removed"),
    ],
)
def test_a_database_that_refuses_is_told(
    database: Engine, inbox: StoredInbox, act: Callable[[StoredInbox], object], told: str
) -> None:
    with database.begin() as connection:
        connection.execute(text("DROP TABLE log_inbox"))
    with pytest.raises(StoreError, match=told):
        act(inbox)


def test_lines_that_a_newer_version_stored_are_told(database: Engine, inbox: StoredInbox) -> None:
    add(inbox, delivery(1))
    with database.begin() as connection:
        connection.execute(text("UPDATE log_inbox SET format = 99"))
    with pytest.raises(StoreError, match="unknown format 99"):
        read(inbox)
