"""The outbox on a real PostgreSQL: who may send what, when, and in which order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import text

from service.alerting.alerts.outbox_row import DeadReason, Outgoing, RowState
from service.alerting.notifications.alertmanager import Merged
from service.delivery.deciding import GIVE_UP_AFTER, done_of, unsendable
from service.runtime.clock import monotonic
from service.storage.delivery.enqueuing import post
from service.storage.delivery.outbox import LEASE
from tests.factories import at
from tests.integration.delivering.given import PAGER, Office, done, groups, message
from tests.integration.storage.conftest import MakeDatabase
from tests.unit.service.alerting.notifications.given import webhook
from tests.unit.service.delivery.given import attempt

pytestmark = pytest.mark.integration
DELIVERED, WAITING, DEAD = RowState.DELIVERED, RowState.WAITING, RowState.DEAD
OVER = LEASE.total_seconds()
DAY = GIVE_UP_AFTER.total_seconds()


@pytest.fixture
def office(new_database: MakeDatabase) -> Office:
    return Office.of(new_database())


def test_groups_are_claimed_side_by_side_and_each_in_order(office: Office) -> None:
    office.post(message("a", "1"), message("b", "1"), message("a", "2"), message("b", "2"))
    first = office.claim()
    assert groups(first) == [("a", "1"), ("b", "1")]
    assert office.claim() == ()
    office.complete(first[0], 1, DELIVERED)
    assert groups(office.claim(1)) == [("a", "2")]


def test_there_is_no_more_than_room_for(office: Office) -> None:
    office.post(*(message(str(number)) for number in range(5)))
    assert len(office.claim(free=2)) == 2
    assert len(office.claim(free=2)) == 2
    assert len(office.claim(free=2)) == 1
    assert office.claim(free=0) == ()


def test_a_lease_that_ran_out_is_claimed_again_as_the_same(office: Office) -> None:
    office.post(message("a", "1"), message("a", "2"))
    (before,) = office.claim()
    assert office.claim(OVER - 1) == ()
    assert office.claim(OVER, busy=[before.id]) == ()
    (again,) = Office.of(office.engine).claim(OVER)
    assert (again.webhook_id, again.body) == (before.webhook_id, before.body)


def test_who_lost_a_lease_decides_nothing_but_that_it_was_delivered(office: Office) -> None:
    office.post(message("a", "1"))
    (lost,) = office.claim()
    other = Office.of(office.engine)
    (held,) = other.claim(OVER)
    office.complete(lost, OVER + 1, WAITING, again=OVER + 2)
    assert office.rows("state") == [("sending",)]
    office.complete(lost, OVER + 2, DELIVERED)
    other.complete(held, OVER + 3, DEAD)
    assert office.rows("state, attempts") == [("delivered", 1)]


def test_what_was_not_sent_after_all_is_given_back(office: Office) -> None:
    office.post(message("a"))
    (one,) = office.claim()
    Office.of(office.engine).outbox.release([one.id], at(1))
    assert office.rows("state") == [("sending",)], "another's claim is not ours to give back"
    office.outbox.release([one.id], at(1))
    (again,) = office.claim(1)
    assert (again.webhook_id, again.attempts) == (one.webhook_id, 0)


def test_what_failed_waits_and_holds_up_its_group_alone(office: Office) -> None:
    office.post(message("a", "1"), message("a", "2"), message("b", "1"))
    (failed, other) = office.claim()
    office.complete(failed, 1, WAITING, again=60)
    office.complete(other, 1, DELIVERED)
    assert office.claim(59) == ()
    assert office.rows("state, attempts")[0] == ("waiting", 1)


def test_a_newer_state_takes_the_place_of_a_stuck_one(office: Office) -> None:
    def joined(older: Sequence[bytes], newest: bytes) -> Merged:
        return Merged(b"+".join([*older, newest]), 7)

    office.post(
        message("a", "1"), message("a", "2", created_at=at(1)), message("a", "3", created_at=at(2))
    )
    (stuck,) = office.claim(5)
    office.complete(stuck, 5, WAITING, again=10)
    found = office.observe(10, merge=joined)
    (one,) = found.claimed
    assert (one.body, one.alerts, one.created_at, one.attempts) == (b"1+2+3", 7, at(0), 0)
    assert found.superseded == ("pager", "pager")
    assert office.rows("state, superseded_by, body, created_at") == [
        ("superseded", one.id, b"1", at(0)),
        ("superseded", one.id, b"2", at(1)),
        ("sending", None, b"1+2+3", at(0)),
    ]


@pytest.mark.parametrize("waited", ["for its receiver", "for the database"])
def test_a_new_message_has_a_day_of_its_own_whatever_waited_before_it(
    office: Office, waited: str
) -> None:
    """The receiver is down since yesterday, or what is enqueued now was made yesterday."""
    if waited == "for its receiver":
        office.post(message("a", "1"))
        (stuck,) = office.claim()
        office.complete(stuck, 1, WAITING, again=DAY)
        office.post(message("a", "2", created_at=at(DAY)))
    else:
        with office.engine.begin() as connection:
            post(connection, [message("a", "2")], office.cluster, at(DAY))
    (one,) = office.claim(DAY + 5)
    assert (one.body, one.created_at) == (b"2", at(0)), "for so long its group has waited"
    for now, state in ((DAY + 5, WAITING), (2 * DAY - 60, WAITING), (2 * DAY + 1, DEAD)):
        done_now = done_of(one, webhook(), attempt(500), now=at(now), chance=0.5)
        assert done_now.state is state


def test_what_never_failed_is_not_superseded(office: Office) -> None:
    office.post(message("a", "1"), message("a", "2"))
    office.claim()
    assert groups(office.claim(OVER)) == [("a", "1")]


def test_what_is_given_up_lets_the_next_one_go(office: Office) -> None:
    office.post(message("a", "1"), message("a", "2"))
    (one,) = office.claim()
    rejected = done(one.id, at(1), DEAD, dead_reason=DeadReason.REJECTED)
    office.deliveries.complete([rejected], at(1))
    assert groups(office.claim(1)) == [("a", "2")]
    assert office.rows("state, dead_reason, done_at")[0] == ("dead", "rejected", at(1))


def test_an_answer_that_is_stored_twice_is_one(office: Office) -> None:
    office.post(message())
    (one,) = office.claim()
    for _ in range(2):
        office.complete(one, 1, WAITING, again=5)
    assert office.rows("state, attempts") == [("waiting", 1)]
    with office.engine.connect() as connection:
        found = connection.execute(text("SELECT detail, took_ms FROM delivery_attempt")).all()
    assert [tuple(row) for row in found] == [("it answered 500�", 5)]


def test_what_could_not_be_sent_is_stored_without_a_duration(office: Office) -> None:
    office.post(message())
    (one,) = office.claim()
    office.deliveries.complete([unsendable(one, at(1))], at(1))
    assert office.rows("state, dead_reason") == [("dead", "unsendable")]
    with office.engine.connect() as connection:
        stored = connection.execute(text("SELECT outcome, took_ms FROM delivery_attempt")).all()
    assert [tuple(row) for row in stored] == [("dead", None)]


def test_an_answer_that_cannot_be_stored_holds_up_no_other(office: Office) -> None:
    office.post(message("a"), message("b"), message("c"))
    first, second, third = office.claim()
    rejected = office.deliveries.complete(
        [
            done(first.id, at(1), DELIVERED),
            done(second.id, at(1), DELIVERED, status=2**40),
            done(third.id, at(1), DELIVERED),
        ],
        at(1),
    )
    assert [(row.kind, row.name) for row in rejected] == [("attempt", str(second.id))]
    assert office.rows("state") == [("delivered",), ("sending",), ("delivered",)]


def test_an_answer_whose_text_cannot_be_stored_is_stored_without_it(office: Office) -> None:
    office.post(message("a"))
    (one,) = office.claim()
    with office.engine.begin() as connection:
        no_text = "ALTER TABLE delivery_attempt ADD CHECK (reply = '')"  # as another encoding has
        connection.execute(text(no_text))
    answer = done(one.id, at(1), DELIVERED, reply="é")
    assert office.deliveries.complete([answer], at(1)) == []
    assert office.rows("state") == [("delivered",)]


def test_a_receiver_that_is_gone_gets_nothing_more(office: Office) -> None:
    office.post(message("a"), message("b"), message("c", receiver="other"))
    office.claim(free=1)
    assert office.deliveries.give_up("pager", at(1)) == 1
    assert office.rows("state, dead_reason") == [
        ("sending", None),
        ("dead", "gone"),
        ("waiting", None),
    ]


def test_what_is_for_nobody_is_given_up(office: Office) -> None:
    other = Office.of(office.engine, "other")
    office.post(message("a"))
    other.post(message("b"))
    former(office, message("c"))
    assert office.deliveries.bury(["else"], at(5)) == [PAGER]
    assert [row[0] for row in office.rows("dead_reason")] == ["receiver_removed", None, None]
    assert other.deliveries.bury([PAGER], at(5)) == []
    assert other.deliveries.bury([PAGER], at(90_000)) == [PAGER], "nobody's, for a day"


def former(office: Office, outgoing: Outgoing) -> None:
    """Store a message of no cluster, as a service of the version before does that still runs."""
    with office.engine.begin() as connection:
        post(connection, [outgoing], None, outgoing.created_at)


def test_another_services_messages_are_left_alone(office: Office) -> None:
    other = Office.of(office.engine, "other")
    office.post(message("a", "ours"))
    other.post(message("a", "theirs"))
    former(office, message("a", "nobody's"))
    for theirs, body in ((other, "theirs"), (office, "ours")):
        assert groups(theirs.claim()) == [("a", body)]
        assert theirs.backlogs.counts(at(0))[PAGER].waiting == 1


def test_the_watchdog_of_a_service_is_its_own(office: Office) -> None:
    """Its group has one key everywhere, and its receiver has to miss it when one service is gone."""
    other = Office.of(office.engine, "other")
    assert office.backlogs.post([message("w", "ours")], at(0)) == 1
    assert other.backlogs.post([message("w", "theirs")], at(0)) == 1
    assert groups(office.claim()) == [("w", "ours")]
    assert groups(other.claim()) == [("w", "theirs")]


def test_a_receiver_that_is_back_is_tried_at_once(office: Office) -> None:
    office.post(message("a"), message("b"))
    for one in office.claim():
        office.complete(one, 1, WAITING, again=600)
    office.deliveries.hasten("pager", at(2))
    assert len(office.claim(2)) == 2


def test_a_clock_that_was_set_moves_what_is_open(office: Office) -> None:
    office.post(message("a"), message("b"))
    first, second = office.claim()
    office.complete(first, 1, DELIVERED)
    office.complete(second, 1, WAITING, again=30)
    office.deliveries.shift(timedelta(hours=-1))
    assert office.rows("created_at, enqueued_at, next_attempt_at")[1] == (
        at(-3600),
        at(-3600),
        at(-3570),
    )
    assert office.rows("created_at")[0] == (at(0),)


@pytest.mark.parametrize("is_one_group", [True, False], ids=["one group", "many groups"])
def test_claims_stay_quick_with_ten_thousand_open_rows(
    office: Office, *, is_one_group: bool
) -> None:
    """100 deliveries of 10,000 that wait; a claim that passes over all of them takes minutes."""
    office.claim()  # plans made while the table is empty must not stay
    with office.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO outbox (webhook_id, cluster, receiver, group_key, group_hash, reason,"
                " is_firing, alerts, body, created_at, state, next_attempt_at) SELECT n::text,"
                " :cluster, 'pager', 'g', CASE WHEN :one THEN 'g' ELSE n::text END, 'r', true, 1,"
                " 'x', :at, 'waiting', :at FROM generate_series(1, 10000) AS n"
            ),
            {"one": is_one_group, "at": at(0), "cluster": office.cluster},
        )
    order: list[int] = []
    began = monotonic()
    for _ in range(100):
        claimed = office.claim(1, free=1)
        office.deliveries.complete([done(one.id, at(1), DELIVERED) for one in claimed], at(1))
        order += [one.id for one in claimed]
    assert len(order) == 100
    if is_one_group:
        assert order == sorted(order)
    assert monotonic() - began < 60


def test_two_deliverers_never_hold_the_same(office: Office) -> None:
    office.post(*(message(str(number % 40), str(number)) for number in range(200)))
    held: list[int] = []
    order: dict[str, list[int]] = {}
    turn = threading.Lock()

    def work() -> None:
        mine = Office.of(office.engine)
        while claimed := mine.claim(1, free=3):
            with turn:
                held.extend(one.id for one in claimed)
                for one in claimed:
                    order.setdefault(one.group_key, []).append(one.id)
            mine.deliveries.complete([done(one.id, at(1), DELIVERED) for one in claimed], at(1))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work()  # what one found held by another when it stopped
    assert len(held) == len(set(held)) == 200
    assert all(ids == sorted(ids) for ids in order.values())
