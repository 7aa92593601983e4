"""When a delivery is tried again, and when no more."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from service.alerting.alerts.outbox_row import OutboxRow
from service.alerting.sending.answers import (
    SLOW,
    Failure,
    Outcome,
    failure_of,
    not_before,
    outcome_of,
)
from service.alerting.sending.sender import Attempt
from service.delivery.deciding import GIVE_UP_AFTER, next_attempt_at
from tests.factories import at
from tests.unit.service.delivery.given import attempt, claimed

ALMOST_ONE = 1 - 2**-53


def tried(failures: int = 1, status: int = 500, **overrides: Any) -> tuple[OutboxRow, Attempt]:
    return claimed(attempts=failures - 1), attempt(status, **overrides)


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(1, 5), (2, 15), (3, 30), (4, 60), (5, 120), (6, 300), (7, 600), (8, 600), (1000, 600)],
)
def test_pauses_grow_to_ten_minutes_and_are_any_part_of_their_step(
    failures: int, seconds: float
) -> None:
    now = at(10)
    assert next_attempt_at(*tried(failures), now, 0.0) == now
    assert next_attempt_at(*tried(failures), now, 0.5) == now + timedelta(seconds=seconds / 2)
    latest = next_attempt_at(*tried(failures), now, ALMOST_ONE)
    assert latest is not None
    assert latest <= now + timedelta(seconds=seconds)


def test_what_a_person_has_to_mend_is_tried_every_ten_to_twenty_minutes() -> None:
    slow = tried(1, 401)
    assert next_attempt_at(*slow, at(0), 0.0) == at(600)
    assert next_attempt_at(*slow, at(0), 0.5) == at(900)


def test_what_the_receiver_asked_for_goes_before_all() -> None:
    for chance in (0.0, ALMOST_ONE):
        asked = tried(8, 401, not_before=at(77))
        assert next_attempt_at(*asked, at(10), chance) == at(77)


def test_after_a_day_nothing_is_tried_any_more() -> None:
    end = at(0) + GIVE_UP_AFTER
    assert next_attempt_at(*tried(9), end, 0.0) == end
    assert next_attempt_at(*tried(9), end - timedelta(seconds=1), 0.9) is None
    assert next_attempt_at(*tried(2, not_before=end + timedelta(hours=1)), end, 0.0) is None


def test_a_receiver_that_asks_to_wait_for_a_day_is_asked_once_more() -> None:
    asked = not_before("86400", at(5))
    assert asked == at(5) + GIVE_UP_AFTER
    assert next_attempt_at(*tried(1, not_before=asked), at(5), 0.0) == asked
    again = not_before("86400", asked)
    assert next_attempt_at(*tried(2, not_before=again), asked, 0.0) is None


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("30", at(30)),
        (" 30 ", at(30)),
        ("0", at(1)),  # at once would be without a pause
        ("999999999", at(86400)),
        ("Mon, 02 Jun 2025 12:05:00 GMT", at(300)),
        ("Mon, 02 Jun 2025 12:05:00 -0000", at(300)),
        ("Mon, 02 Jun 2025 11:00:00 GMT", at(1)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", at(86400)),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("9" * 5000, None),
        ("٣٠", None),  # digits, but not HTTP's
        ("Mon, 99 Jun 2025 12:05:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, expected: datetime | None) -> None:
    assert not_before(header, at(0)) == expected


@pytest.mark.parametrize(
    ("status", "failure", "outcome"),
    [
        (200, None, Outcome.DELIVERED),
        (202, None, Outcome.DELIVERED),
        (204, None, Outcome.DELIVERED),
        (299, None, Outcome.DELIVERED),
        (301, Failure.REDIRECT, Outcome.RETRY),
        (302, Failure.REDIRECT, Outcome.RETRY),
        (304, Failure.REDIRECT, Outcome.RETRY),
        (307, Failure.REDIRECT, Outcome.RETRY),
        (400, Failure.CLIENT_ERROR, Outcome.DEAD),
        (401, Failure.AUTH, Outcome.RETRY),
        (403, Failure.AUTH, Outcome.RETRY),
        (404, Failure.NOT_FOUND, Outcome.RETRY),
        (405, Failure.CLIENT_ERROR, Outcome.DEAD),
        (408, Failure.TIMEOUT, Outcome.RETRY),
        (410, Failure.GONE, Outcome.DISABLED),
        (413, Failure.CLIENT_ERROR, Outcome.DEAD),
        (422, Failure.CLIENT_ERROR, Outcome.DEAD),
        (425, Failure.CLIENT_ERROR, Outcome.RETRY),
        (429, Failure.RATE_LIMITED, Outcome.RETRY),
        (451, Failure.CLIENT_ERROR, Outcome.DEAD),
        (500, Failure.SERVER_ERROR, Outcome.RETRY),
        (502, Failure.SERVER_ERROR, Outcome.RETRY),
        (503, Failure.SERVER_ERROR, Outcome.RETRY),
        (599, Failure.SERVER_ERROR, Outcome.RETRY),
        (999, Failure.SERVER_ERROR, Outcome.RETRY),
    ],
)
def test_an_answer_decides_what_follows(
    status: int, failure: Failure | None, outcome: Outcome
) -> None:
    assert failure_of(status) is failure
    assert outcome_of(status, failure) is outcome


@pytest.mark.parametrize(
    "failure",
    [
        Failure.TIMEOUT,
        Failure.CONNECTION,
        Failure.TLS,
        Failure.NAME,
        Failure.ADDRESS_DENIED,
    ],
)
def test_no_answer_is_never_the_end(failure: Failure) -> None:
    assert outcome_of(None, failure) is Outcome.RETRY


def test_only_what_a_person_has_to_mend_is_slow() -> None:
    assert {Failure.AUTH, Failure.NOT_FOUND, Failure.ADDRESS_DENIED} < SLOW
    assert not SLOW & {Failure.TIMEOUT, Failure.CONNECTION, Failure.SERVER_ERROR, Failure.NAME}
