"""What an inbox of log lines promises, on the fake that tests use and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from rules.facts.broker_log import LogSource
from service.observe.log_inbox import Store
from service.storage.database import schema
from service.storage.database.engine import open_database
from service.storage.rounds.inbox import Counts, KnownDelivery, StoredInbox, WaitingLines
from tests.database_files import give_files
from tests.factories import at
from tests.fakes import MemoryInbox
from tests.folders import new_folder
from tests.integration.storage.given_lines import add, delivery, offsets, read, stream

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def database() -> Iterator[Engine]:
    folder = new_folder()
    opened = open_database(None, give_files(folder))
    schema.upgrade(opened.engine)
    yield opened.engine
    opened.close()
    shutil.rmtree(folder)


@pytest.fixture
def postgres(database: Engine) -> StoredInbox:
    """Give an inbox of this test's own: each cluster has one."""
    return StoredInbox(lambda: database, uuid4().hex)


@pytest.fixture(params=["fake", "postgres"])
def inbox(request: pytest.FixtureRequest) -> Store:
    made: Store = MemoryInbox() if request.param == "fake" else request.getfixturevalue("postgres")
    return made


def test_an_empty_inbox_has_nothing(inbox: Store) -> None:
    assert read(inbox) == WaitingLines(parsed=(), last_id=None, is_all=True, sources=())


def test_what_was_added_is_read_whole_and_in_order(inbox: Store) -> None:
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
    inbox: Store, limits: dict[str, int], parts: list[list[int]]
) -> None:
    add(inbox, delivery(1, 2), delivery(3), delivery(4, 5, 6, 7), delivery(8))
    after = 0
    for number, part in enumerate(parts):
        found = read(inbox, after, **limits)
        assert offsets(found) == part, "one delivery at least, however large"
        assert found.is_all is (number == len(parts) - 1)
        assert found.last_id is not None
        after = found.last_id


def test_what_was_read_can_be_read_again(inbox: Store) -> None:
    add(inbox, delivery(1))
    assert offsets(read(inbox)) == offsets(read(inbox)) == [1]


def test_a_key_is_known_with_what_was_answered(inbox: Store) -> None:
    add(inbox, delivery(1, 2, key="k", digest="abc"), delivery(3))
    with inbox.turn() as turn:
        assert turn.find_delivery("k") == KnownDelivery(
            digest="abc", counts=Counts(lines=7, events=2, unparsed=1)
        )
        assert turn.find_delivery("l") is None


def test_events_and_deliveries_that_wait_are_counted(inbox: Store) -> None:
    add(inbox, delivery(1, 2), delivery())
    first = read(inbox, rows=1).last_id
    assert first is not None
    with inbox.turn() as turn:
        assert [turn.waiting(after) for after in (0, first, first + 1)] == [4, 1, 0]


def test_where_a_stream_unchanged_is_what_came_last(inbox: Store) -> None:
    add(inbox, delivery(1, streams=[stream("a", state="one"), stream("b", state="two")]))
    add(inbox, delivery(2, streams=[stream("a", state="three", last_line_at=None)]))
    with inbox.turn() as turn:
        assert turn.states(["a", "b", "c"]) == ({"a": "three", "b": "two"}, 2)
    assert [one.last_line_at for one in read(inbox).sources] == [at(5), at(5)], "it never goes back"


def test_a_turn_that_fails_leaves_nothing(inbox: Store) -> None:
    def turn_that_fails() -> None:
        with inbox.turn() as turn:
            turn.add(delivery(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        turn_that_fails()
    assert read(inbox) == WaitingLines(parsed=(), last_id=None, is_all=True, sources=())
