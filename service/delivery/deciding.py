"""Decides what becomes of a notification after an attempt, and when there is another one. Pure.

The schedule of Standard Webhooks waits for hours, which suits bookkeeping, but a page that comes two
days late is noise. Ours is dense at first, and ends after a day.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, assert_never

from service.alerting.alerts.dedup import NotifyReason
from service.alerting.alerts.outbox_row import DeadReason, OutboxRow, RowState
from service.alerting.receivers.receivers import AlertmanagerReceiver, Receiver
from service.alerting.sending.answers import Outcome
from service.alerting.sending.sender import Attempt
from service.storage.delivery.delivered import Done

STEPS: Final = tuple(timedelta(seconds=seconds) for seconds in (0, 5, 15, 30, 60, 120, 300, 600))
GIVE_UP_AFTER: Final = timedelta(hours=24)
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
        took_ms=None,
        outcome=str(Outcome.DEAD),
        detail="the body does not fit the receiver's present kind",
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
            again = next_attempt_at(claimed, attempt, now, chance)
            if again is None:
                return RowState.DEAD, None, DeadReason.TOO_OLD
            return RowState.WAITING, again, None
        case _:
            assert_never(attempt.outcome)


def next_attempt_at(
    claimed: OutboxRow, attempt: Attempt, now: datetime, chance: float
) -> datetime | None:
    """Return when to try again after a failed attempt; None once it could be tried for a day.

    The day counts from when this notification itself was enqueued: what it supersedes may have waited for days.

    `chance` is drawn from [0, 1): the pause is that part of its step, so that deliveries that failed
    together are not retried together. The receiver's `not_before` has precedence: it is honoured even
    if it lies after that day, because otherwise the first answer could end the delivery.
    """
    last = claimed.enqueued_at + GIVE_UP_AFTER
    if attempt.not_before is not None:
        return attempt.not_before if now < last else None
    failures = claimed.attempts + 1
    step = STEPS[min(failures, len(STEPS) - 1)]
    timestamp = now + (STEPS[-1] * (1 + chance) if attempt.is_slow else step * chance)
    return timestamp if timestamp <= last else None


def _is_repetition(claimed: OutboxRow, receiver: Receiver) -> bool:
    """Whether it is one of the pushes that an Alertmanager gets every minute: nobody reads them."""
    is_again = claimed.reason == NotifyReason.REPEAT_INTERVAL
    return is_again and isinstance(receiver, AlertmanagerReceiver)
