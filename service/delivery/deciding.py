"""Decides what becomes of a notification after an attempt. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final, assert_never

from service.alerting.alerts.dedup import NotifyReason
from service.alerting.alerts.outbox_row import DeadReason, OutboxRow, RowState
from service.alerting.receivers.receivers import AlertmanagerReceiver, Receiver
from service.alerting.sending.answers import Outcome
from service.alerting.sending.backoff import FailedDelivery, next_attempt_at
from service.alerting.sending.sender import Attempt
from service.storage.delivery.delivered import Done

_MS: Final = 1000


def done_of(
    claimed: OutboxRow, receiver: Receiver, attempt: Attempt, *, now: datetime, chance: float
) -> Done:
    """Return the row to store after an attempt; `chance`, from [0, 1), varies the pause after it."""
    state, again, why = _next(claimed, attempt, now, chance)
    return Done(
        id=claimed.id,
        at=attempt.at,
        took_ms=round(attempt.took.total_seconds() * _MS),
        outcome=str(attempt.outcome),
        status=attempt.status,
        failure=None if attempt.failure is None else str(attempt.failure),
        detail=attempt.detail,
        reply=attempt.reply,
        state=state,
        next_attempt_at=again,
        dead_reason=why,
        drops_body=state is RowState.DELIVERED and _is_repetition(claimed, receiver),
    )


def unsendable(claimed: OutboxRow, now: datetime) -> Done:
    """Return the row to store for a notification that does not fit its receiver's settings any more."""
    return Done(
        id=claimed.id,
        at=now,
        took_ms=0,
        outcome=str(Outcome.DEAD),
        status=None,
        failure=None,
        detail="the body does not fit the receiver's present kind",
        reply="",
        state=RowState.DEAD,
        dead_reason=DeadReason.UNSENDABLE,
    )


def _next(
    claimed: OutboxRow, attempt: Attempt, now: datetime, chance: float
) -> tuple[RowState, datetime | None, DeadReason | None]:
    match attempt.outcome:
        case Outcome.DELIVERED:
            return RowState.DELIVERED, None, None
        case Outcome.DEAD:
            return RowState.DEAD, None, DeadReason.REJECTED
        case Outcome.DISABLED:
            return RowState.DEAD, None, DeadReason.GONE
        case Outcome.RETRY:
            tried = FailedDelivery(
                created_at=claimed.created_at,
                failures=claimed.attempts + 1,
                not_before=attempt.not_before,
                is_slow=attempt.is_slow,
            )
            again = next_attempt_at(tried, now, chance)
            if again is None:
                return RowState.DEAD, None, DeadReason.TOO_OLD
            return RowState.WAITING, again, None
        case _:
            assert_never(attempt.outcome)


def _is_repetition(claimed: OutboxRow, receiver: Receiver) -> bool:
    """Whether it is one of the pushes that an Alertmanager gets every minute: nobody reads them."""
    is_again = claimed.reason == NotifyReason.REPEAT_INTERVAL
    return is_again and isinstance(receiver, AlertmanagerReceiver)
