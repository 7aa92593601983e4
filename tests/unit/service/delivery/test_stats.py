"""The stats of receivers: what the outbox holds is absent until it was read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from service.delivery.stats import Stats
from service.storage.delivery.deliveries import Backlog

AT = datetime(2026, 1, 31, 3, tzinfo=UTC)


def test_a_backlog_that_was_never_read_is_absent_and_not_empty() -> None:
    pager = Stats({"pager": None}).reported(AT).receivers["pager"]
    assert (pager.waiting, pager.dead, pager.oldest_seconds) == (None, None, None)


def test_a_receiver_without_a_row_in_the_outbox_has_an_empty_backlog() -> None:
    stats = Stats({"pager": None})
    stats.waiting({})
    pager = stats.reported(AT).receivers["pager"]
    assert (pager.waiting, pager.dead, pager.oldest_seconds) == (0, 0, 0.0)


def test_the_age_of_a_backlog_is_that_of_its_oldest_notification_and_never_negative() -> None:
    stats = Stats({"pager": None})
    stats.waiting({"pager": Backlog(waiting=2, dead=1, oldest_waiting_at=AT)})
    later = stats.reported(AT + timedelta(seconds=7)).receivers["pager"]
    assert (later.waiting, later.dead, later.oldest_seconds) == (2, 1, 7.0)
    earlier = stats.reported(AT - timedelta(seconds=7)).receivers["pager"]
    assert earlier.oldest_seconds == 0.0
