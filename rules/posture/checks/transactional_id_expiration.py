"""Coordinators forget transactional ids that rest between two runs.

Judges:
    `transactional.id.expiration.ms` of each broker, against `transaction.max.timeout.ms` and a day.

What can go wrong:
    An id that has no transaction for so long is forgotten. Its producer gets another producer id at its next
    start: the instance of before, if it is still alive, is then not fenced and may finish what it has begun, and a
    partition that still has a transaction of it open holds it for ever. A producer that runs on is rejected
    with INVALID_PRODUCER_ID_MAPPING.

How to set it:
    Longer than the longest pause of a producer, such as a weekend; Kafka's default is seven days (604800000). It is
    read at the start.

What it does not say:
    How long producers really pause. Below a day is only information: who runs all the time is not affected.
"""

from __future__ import annotations

from typing import Final

from rules.facts.config_keys import TRANSACTION_MAX_TIMEOUT_MS, TRANSACTIONAL_ID_EXPIRATION_MS
from rules.facts.configs import ConfigEntry
from rules.posture.commands import IN_FILE
from rules.posture.judging import FewCheck, Judged
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
)
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict

DAY_MS: Final = 86_400_000


class Why(PostureReason):
    """Reasons of this check."""

    LONG_ENOUGH = "long_enough"
    SHORTER_THAN_A_DAY = "shorter_than_a_day"
    SHORTER_THAN_TRANSACTIONS = "shorter_than_transactions"


CHECK: Final = PostureCheck(
    check_id="transactional_id_expiration",
    scope=PostureScope.BROKER,
    setting=TRANSACTIONAL_ID_EXPIRATION_MS,
    summary="Coordinators remember a transactional id for longer than its producer pauses.",
    milder=frozenset({Why.SHORTER_THAN_A_DAY}),
)

FIX: Final = f"{IN_FILE}transactional.id.expiration.ms=604800000"
ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.SHORTER_THAN_A_DAY: Advice(
        consequence="A producer that runs once a day is forgotten between two runs: its former instance is not "
        "fenced.",
        fix=FIX,
    ),
    Why.SHORTER_THAN_TRANSACTIONS: Advice(
        consequence="An id is forgotten after {value} ms, although a transaction may take {longest} ms "
        "(transaction.max.timeout.ms).",
        fix=FIX,
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every broker."""
    values = subject.broker_values(TRANSACTION_MAX_TIMEOUT_MS).values()
    limits = [entry.number or 0 for entry in values if isinstance(entry, ConfigEntry)]
    longest = max(limits, default=0)

    def decide(entry: ConfigEntry) -> Judged:
        expiration = entry.number or 0
        if expiration < longest:
            return Verdict.BREACH, Why.SHORTER_THAN_TRANSACTIONS
        if expiration < DAY_MS:
            return Verdict.BREACH, Why.SHORTER_THAN_A_DAY
        return Verdict.OK, Why.LONG_ENOUGH

    check = FewCheck(check=CHECK, subject=subject, advice=ADVICE)
    return check.judge_brokers(decide, longest=longest)
