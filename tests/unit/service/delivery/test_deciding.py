"""What becomes of a notification after an attempt."""

from __future__ import annotations

from datetime import datetime

import pytest

from service.alerting.alerts.dedup import NotifyReason
from service.alerting.alerts.outbox_row import DeadReason, RowState
from service.alerting.receivers.receivers import Receiver
from service.delivery.deciding import done_of, unsendable
from tests.factories import at
from tests.unit.service.alerting.notifications.given import alertmanager, webhook
from tests.unit.service.delivery.given import attempt, claimed

DAY = 86_400


@pytest.mark.parametrize(
    ("status", "now", "state", "again", "why"),
    [
        pytest.param(204, 1, RowState.DELIVERED, None, None, id="taken"),
        pytest.param(500, 1, RowState.WAITING, at(3.5), None, id="half of five seconds"),
        pytest.param(None, 1, RowState.WAITING, at(3.5), None, id="no answer"),
        pytest.param(401, 1, RowState.WAITING, at(901), None, id="a person mends it: seldom"),
        pytest.param(400, 1, RowState.DEAD, None, DeadReason.REJECTED, id="never taken"),
        pytest.param(410, 1, RowState.DEAD, None, DeadReason.GONE, id="gone"),
        pytest.param(500, DAY, RowState.DEAD, None, DeadReason.TOO_OLD, id="for a day"),
    ],
)
def test_an_answer_decides(
    status: int | None, now: float, state: RowState, again: datetime | None, why: DeadReason | None
) -> None:
    answer = attempt(status)
    done = done_of(claimed(), webhook(), answer, now=at(now), chance=0.5)
    assert (done.state, done.next_attempt_at, done.dead_reason) == (state, again, why)
    assert (done.took_ms, done.status) == (500, status)


def test_what_could_not_be_sent_took_no_time() -> None:
    done = unsendable(claimed(), at(1))
    assert (done.took_ms, done.dead_reason) == (None, DeadReason.UNSENDABLE)


@pytest.mark.parametrize(
    ("receiver", "reason", "drops"),
    [
        (alertmanager(), NotifyReason.REPEAT_INTERVAL, True),
        (alertmanager(), NotifyReason.NEW_ALERTS, False),
        (webhook(), NotifyReason.REPEAT_INTERVAL, False),
    ],
)
def test_only_what_an_alertmanager_is_told_every_minute_is_not_kept(
    receiver: Receiver, reason: NotifyReason, *, drops: bool
) -> None:
    done = done_of(claimed(reason=reason), receiver, attempt(), now=at(1), chance=0.5)
    assert done.drops_body is drops
