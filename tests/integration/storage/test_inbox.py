"""The inbox of log lines on a real database: what is added is read once, in order, by its reader."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from sqlalchemy import Engine, text

from rules.errors import StoreError
from rules.facts.broker_log import LogSource, Origin, WatermarkWentBack
from service.clock import wait_until
from service.storage.inbox import (
    KEPT_READ,
    SILENT,
    Counts,
    KnownDelivery,
    NewDelivery,
    StoredInbox,
    StreamState,
    WaitingLines,
)
from service.storage.log_format import ParsedLines
from tests.factories import NOON, at

pytestmark = pytest.mark.integration

MUCH: Final = 1000
SECOND: Final = timedelta(seconds=1)
WAITING: Final = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")


@pytest.fixture
def inbox(database: Engine) -> StoredInbox:
    return StoredInbox(lambda: database, "default")


def event(offset: int, topic: str = "orders") -> WatermarkWentBack:
    origin = Origin(source="broker-1", at=at(offset))
    return WatermarkWentBack(
        origin=origin, topic=topic, partition=0, offset_before=offset + 1, offset=offset
    )


def delivery(
    *offsets: int, received_at: datetime = NOON, streams: Sequence[StreamState] = (), **given: Any
) -> NewDelivery:
    source = LogSource(name="broker-1", lines=7, unparsed=1, last_line_at=at(5))
    return NewDelivery(
        received_at=received_at,
        key=given.get("key"),
        digest=given.get("digest", "d"),
        counts=Counts(lines=7, events=len(offsets), unparsed=1),
        parsed=ParsedLines(events=tuple(event(one) for one in offsets), sources=(source,)),
        streams=streams or [stream()],
    )


def stream(name: str = "broker-1", **given: Any) -> StreamState:
    base = {"source": name, "state": "{}", "last_line_at": at(5)}
    return StreamState(name=name, **{**base, **given})


def add(inbox: StoredInbox, *new: NewDelivery) -> None:
    for one in new:
        with inbox.turn() as turn:
            turn.add(one)


def read(
    inbox: StoredInbox, after: int = 0, *, events: int = MUCH, rows: int = MUCH
) -> WaitingLines:
    return inbox.after(after, max_events=events, max_rows=rows)


def offsets(found: WaitingLines) -> list[int]:
    events = [one for part in found.parsed for one in part.events]
    return [one.offset for one in events if isinstance(one, WatermarkWentBack)]


def test_an_empty_inbox_has_nothing(inbox: StoredInbox) -> None:
    assert read(inbox) == WaitingLines(parsed=(), last_id=None, is_all=True, sources=())


def test_what_was_added_is_read_whole_and_in_order(inbox: StoredInbox) -> None:
    new = [delivery(1, 2), delivery(), delivery(3)]
    add(inbox, *new)
    found = read(inbox)
    assert found.parsed == tuple(one.parsed for one in new)
    assert found.is_all
    assert found.sources == (LogSource(name="broker-1", last_line_at=at(5)),)
    assert found.last_id is not None
    assert read(inbox, found.last_id).parsed == ()


@pytest.mark.parametrize(
    ("limits", "parts"),
    [
        ({"events": 3}, [[1, 2, 3], [4, 5, 6, 7], [8]]),
        ({"events": 1}, [[1, 2], [3], [4, 5, 6, 7], [8]]),
        ({"rows": 1}, [[1, 2], [3], [4, 5, 6, 7], [8]]),
        ({"rows": 3}, [[1, 2, 3, 4, 5, 6, 7], [8]]),
        ({"rows": 4}, [[1, 2, 3, 4, 5, 6, 7, 8]]),
    ],
)
def test_a_limit_leaves_the_rest_for_the_next_time(
    inbox: StoredInbox, limits: dict[str, int], parts: list[list[int]]
) -> None:
    add(inbox, delivery(1, 2), delivery(3), delivery(4, 5, 6, 7), delivery(8))
    after = 0
    for number, part in enumerate(parts):
        found = read(inbox, after, **limits)
        assert offsets(found) == part, "one delivery at least, however large"
        assert found.is_all is (number == len(parts) - 1)
        assert found.last_id is not None
        after = found.last_id


def test_what_was_read_can_be_read_again(inbox: StoredInbox) -> None:
    add(inbox, delivery(1))
    assert offsets(read(inbox)) == offsets(read(inbox)) == [1]


def test_another_cluster_has_another_inbox(inbox: StoredInbox, database: Engine) -> None:
    other = StoredInbox(lambda: database, "other")
    add(inbox, delivery(1, key="k"))
    with other.turn() as turn:
        assert turn.known("k") is None
        assert turn.waiting(0) == 0
        assert turn.states(["broker-1"]) == ({}, 0)
    assert read(other) == WaitingLines(parsed=(), last_id=None, is_all=True, sources=())
    other.remove_read(MUCH, NOON + 2 * SILENT)
    assert offsets(read(inbox)) == [1]


def test_a_key_is_known_with_what_was_answered(inbox: StoredInbox) -> None:
    add(inbox, delivery(1, 2, key="k", digest="abc"), delivery(3))
    with inbox.turn() as turn:
        assert turn.known("k") == KnownDelivery(
            digest="abc", counts=Counts(lines=7, events=2, unparsed=1)
        )
        assert turn.known("l") is None


def test_events_and_deliveries_that_wait_are_counted(inbox: StoredInbox) -> None:
    add(inbox, delivery(1, 2), delivery())
    first = read(inbox, rows=1).last_id
    assert first is not None
    with inbox.turn() as turn:
        assert [turn.waiting(after) for after in (0, first, first + 1)] == [4, 1, 0]


def test_where_a_stream_stands_is_what_came_last(inbox: StoredInbox) -> None:
    add(inbox, delivery(1, streams=[stream("a", state="one"), stream("b", state="two")]))
    add(inbox, delivery(2, streams=[stream("a", state="three", last_line_at=None)]))
    with inbox.turn() as turn:
        assert turn.states(["a", "b", "c"]) == ({"a": "three", "b": "two"}, 2)
    assert [one.last_line_at for one in read(inbox).sources] == [at(5), at(5)], "it never goes back"


def test_a_turn_that_fails_leaves_nothing(inbox: StoredInbox) -> None:
    def turn_that_fails() -> None:
        with inbox.turn() as turn:
            turn.add(delivery(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        turn_that_fails()
    assert read(inbox) == WaitingLines(parsed=(), last_id=None, is_all=True, sources=())


def test_nothing_is_seen_before_what_has_a_smaller_id(inbox: StoredInbox, database: Engine) -> None:
    second = threading.Thread(target=lambda: add(inbox, delivery(2)))
    with inbox.turn() as turn:
        turn.add(delivery(1))
        second.start()
        with database.connect() as connection:
            assert wait_until(
                lambda: connection.execute(WAITING).scalar_one() == 1, timeout_seconds=4
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
    assert inbox.remove_read(third, NOON + KEPT_READ) == 0, "a repetition must be known for an hour"
    assert inbox.remove_read(third, NOON + KEPT_READ + SECOND) == 2
    assert offsets(read(inbox)) == [3, 4]
    assert inbox.remove_read(None, NOON + 99 * KEPT_READ) == 0, "no stored round has read any"
    assert inbox.remove_read(third, NOON + 2 * KEPT_READ) == 1
    assert offsets(read(inbox)) == [4], "it waits for a round, however old it is"


def test_a_stream_that_is_silent_for_a_day_is_forgotten(inbox: StoredInbox) -> None:
    add(inbox, delivery(1, received_at=NOON, streams=[stream("a")]))
    add(inbox, delivery(1, received_at=NOON + SECOND, streams=[stream("b")]))
    inbox.remove_read(0, NOON + SILENT + SECOND)
    assert [one.name for one in read(inbox).sources] == ["b"]


def test_more_than_a_batch_goes_in_several(
    inbox: StoredInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.storage.inbox.BATCH", 2)
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
