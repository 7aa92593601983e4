"""Who else is told, and how much waits: the questions of upkeep on a real PostgreSQL."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from service.alerting.alerts.outbox_row import Outgoing, RowState, group_hash
from service.storage.delivery.deliveries import Backlog
from tests.factories import at
from tests.integration.delivering.given import Office, done, message
from tests.integration.storage.conftest import MakeDatabase

pytestmark = pytest.mark.integration
AFTER = timedelta(minutes=5)
REPEATED = "repeat interval elapsed"


@pytest.fixture
def office(new_database: MakeDatabase) -> Office:
    return Office.of(new_database())


def late(office: Office, seconds: float) -> list[int]:
    """Return the ids of what the fallback receiver has to be told."""
    return [one.id for one in office.backlogs.late("backup", after=AFTER, now=at(seconds))]


def instead(row: int, *, is_firing: bool = True, seconds: float = 300) -> Outgoing:
    return message(
        "pager/g",
        receiver="backup",
        group_hash=group_hash("pager/g", "fallback"),
        is_firing=is_firing,
        fallback_of=row,
        created_at=at(seconds),
    )


def test_what_fires_and_waits_too_long_is_told_once(office: Office) -> None:
    (first, *_) = office.post(
        message("g"), message("over", is_firing=False), message("b", receiver="backup")
    )
    assert late(office, 299) == []
    assert late(office, 300) == [first]
    assert office.backlogs.post([instead(first), instead(first)], at(0)) == 1
    assert late(office, 300) == []
    assert late(office, 900) == [], "the fallback receiver has no fallback"


def test_what_is_given_up_is_told_at_once(office: Office) -> None:
    office.post(message("g"))
    (one,) = office.claim()
    office.deliveries.complete([done(one.id, at(1), RowState.DEAD)], at(1))
    assert late(office, 1) == [one.id]
    assert late(office, 90_000) == []


def test_the_end_is_told_where_the_beginning_was(office: Office) -> None:
    (begun,) = office.post(message("g"))
    assert office.backlogs.post([instead(begun)], at(0)) == 1
    _, over = office.post(
        message("g", created_at=at(310)), message("g", is_firing=False, created_at=at(320))
    )
    assert late(office, 320) == [over]
    assert office.backlogs.post([instead(over, is_firing=False, seconds=320)], at(0)) == 1
    assert late(office, 330) == []
    assert late(office, 700) == [], "what was told to be over does not fire after that"


def test_an_end_is_told_to_no_one_who_was_not_told_of_the_beginning(office: Office) -> None:
    begun, over = office.post(message("g"), message("g", is_firing=False, created_at=at(310)))
    office.backlogs.post([instead(begun), instead(over, is_firing=False, seconds=320)], at(0))
    office.post(message("g", created_at=at(400)), message("g", is_firing=False, created_at=at(500)))
    with office.engine.begin() as connection:
        connection.execute(text("UPDATE outbox SET state = 'delivered' WHERE receiver = 'pager'"))
    assert late(office, 510) == []
    (anew,) = office.post(message("g", created_at=at(600)))
    assert late(office, 900) == [anew]
    office.backlogs.post([instead(anew, seconds=900)], at(0))
    (end,) = office.post(message("g", is_firing=False, created_at=at(910)))
    assert late(office, 910) == [end]


def test_the_watchdog_has_no_fallback(office: Office) -> None:
    office.post(message("w", reason="watchdog"))
    assert late(office, 400) == []


def test_repetitions_are_no_news_to_the_fallback_receiver(office: Office) -> None:
    (begun,) = office.post(message("g"))
    office.backlogs.post([instead(begun)], at(0))
    (_, other) = office.post(
        message("g", reason=REPEATED, created_at=at(1)),
        message("h", reason=REPEATED, created_at=at(1)),
    )
    assert late(office, 400) == [other]


def test_what_waits_is_counted(office: Office) -> None:
    office.post(
        message("a"),
        message("b", created_at=at(5)),
        message("c", receiver="other", created_at=at(9)),
    )
    (one, *_) = office.claim(10)
    office.deliveries.complete([done(one.id, at(10), RowState.DEAD)], at(10))
    assert office.backlogs.counts(at(10)) == {
        "pager": Backlog(waiting=1, dead=1, oldest_waiting_at=at(5)),
        "other": Backlog(waiting=1, dead=0, oldest_waiting_at=at(9)),
    }
    assert office.backlogs.counts(at(90_000))["pager"].dead == 0
