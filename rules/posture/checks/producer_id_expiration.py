"""Brokers forget producers while these may still send a batch again.

Judges:
    `producer.id.expiration.ms` of each broker against the longest default of a client's delivery timeout.

What can go wrong:
    A partition recognises a batch that it has already by the producer's last sequence numbers. A producer that is
    idle for longer than this setting is forgotten, and a retry that comes after it is appended a second
    time, without an error. Producers retry for `delivery.timeout.ms` (Java, 120 s) or `message.timeout.ms`
    (librdkafka, 300 s).

How to set it:
    Longer than the delivery timeout of every client; Kafka's default is a day (86400000). It can be set at run
    time for all brokers.

What it does not say:
    How long producers really are idle. A longer value costs memory per producer and partition. That retention deletes
    a producer's last record does not make a broker of these releases forget it.
"""

from __future__ import annotations

from typing import Final

from rules.facts.config_keys import PRODUCER_ID_EXPIRATION_MS
from rules.facts.configs import ConfigEntry
from rules.posture.commands import OF_BROKERS
from rules.posture.judging import FewCheck, Judged
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
)
from rules.posture.setting_values import DELIVERY_TIMEOUT_MS, MESSAGE_TIMEOUT_MS
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict

LONGEST_RETRY_MS: Final = max(DELIVERY_TIMEOUT_MS, MESSAGE_TIMEOUT_MS)


class Why(PostureReason):
    """Reasons of this check."""

    LONG_ENOUGH = "long_enough"
    SHORTER_THAN_RETRIES = "shorter_than_retries"


CHECK: Final = PostureCheck(
    check_id="producer_id_expiration",
    scope=PostureScope.BROKER,
    setting=PRODUCER_ID_EXPIRATION_MS,
    summary="Brokers remember a producer for longer than it may send a batch again.",
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.SHORTER_THAN_RETRIES: Advice(
        consequence="A producer that was idle for {value} ms is forgotten, while clients send a batch again for "
        f"up to {LONGEST_RETRY_MS} ms: such a retry is appended a second time.",
        fix=f"{OF_BROKERS}producer.id.expiration.ms=86400000",
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every broker."""
    return FewCheck(check=CHECK, subject=subject, advice=ADVICE).judge_brokers(_judge)


def _judge(entry: ConfigEntry) -> Judged:
    if (entry.number or 0) < LONGEST_RETRY_MS:
        return Verdict.BREACH, Why.SHORTER_THAN_RETRIES
    return Verdict.OK, Why.LONG_ENOUGH
