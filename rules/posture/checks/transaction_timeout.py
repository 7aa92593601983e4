"""A transactional id has a longer timeout than the brokers allow.

Judges:
    The timeout of each transactional id, as its coordinator describes an open transaction or the transaction log
    says of one that ended, against the lowest `transaction.max.timeout.ms` of the brokers.

What can go wrong:
    The coordinator rejects a longer timeout when the producer initialises itself the next time
    (INVALID_TRANSACTION_TIMEOUT): a pipeline that works stops at its next restart. This happens after
    `transaction.max.timeout.ms` was lowered.

How to set it:
    `transaction.timeout.ms` of the producer, or `transaction.max.timeout.ms` of all brokers, which is read at
    the start. Flink's default is one hour, above the brokers' 15 minutes.

What it does not say:
    A long timeout that is allowed is not reported: as long as that, a producer that died holds back readers
    with `isolation.level=read_committed`. An id that has had no transaction since Tidemark began is not seen. Two-phase commit (KIP-939) has no timeout by design.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.config_keys import TRANSACTION_MAX_TIMEOUT_MS
from rules.facts.configs import ConfigEntry
from rules.facts.transactions import NO_TIMEOUT
from rules.posture.commands import IN_FILE
from rules.posture.judging import FewCheck, Judged
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
    Shown,
    Unseen,
)
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict

MILLISECOND: Final = timedelta(milliseconds=1)


class Why(PostureReason):
    """Reasons of this check."""

    ALLOWED = "allowed"
    ABOVE_MAXIMUM = "above_maximum"


CHECK: Final = PostureCheck(
    check_id="transaction_timeout",
    scope=PostureScope.TRANSACTIONAL_ID,
    setting="transaction.timeout.ms",
    summary="The brokers allow the timeout of each transactional id.",
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.ABOVE_MAXIMUM: Advice(
        consequence="The brokers allow {most} ms (transaction.max.timeout.ms): the producer is rejected with "
        "INVALID_TRANSACTION_TIMEOUT when it starts the next time.",
        fix="In the producer: transaction.timeout.ms={most}. Or: "
        f"{IN_FILE}transaction.max.timeout.ms={{value}}",
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every transactional id whose timeout is known."""
    check = FewCheck(check=CHECK, subject=subject, advice=ADVICE, is_mild=False)
    values = list(subject.broker_values(TRANSACTION_MAX_TIMEOUT_MS).values())
    limits = [e.number for e in values if isinstance(e, ConfigEntry) and e.number is not None]
    reason = next((value for value in values if isinstance(value, Unseen)), Unseen.NOT_READ)
    most = min(limits, default=None)
    return check.judge(
        [
            check.line(
                name,
                _judge(timeout, most, reason),
                Shown(value=str(timeout // MILLISECOND), words={"most": most}),
            )
            for name, timeout in sorted(subject.timeouts.items())
        ]
    )


def _judge(timeout: timedelta, most: int | None, reason: Unseen) -> Judged:
    if timeout >= NO_TIMEOUT:
        return Verdict.OK, Why.ALLOWED
    if most is None:
        return Verdict.UNKNOWN, reason
    if timeout > most * MILLISECOND:
        return Verdict.BREACH, Why.ABOVE_MAXIMUM
    return Verdict.OK, Why.ALLOWED
