"""Brokers append transactional records without asking the coordinator first.

Judges:
    `transaction.partition.verification.enable` of each broker.

What can go wrong:
    Without the verification (KIP-890) a delayed request of a transaction that is over opens a new one on the
    partition, of which no coordinator knows. It hangs: readers with `isolation.level=read_committed` stop there
    until somebody aborts it by hand, or its records become part of the next transaction.

How to set it:
    `true`, which is Kafka's default since 3.6. It can be set at run time for all brokers.

What it does not say:
    Releases before 3.6 have no verification: UNKNOWN. Clients that speak `transaction.version` 2 are verified by
    the protocol itself; all others, librdkafka among them, need the setting.
"""

from __future__ import annotations

from typing import Final

from rules.facts.config_keys import PARTITION_VERIFICATION
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
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict


class Why(PostureReason):
    """Reasons of this check."""

    VERIFIED = "verified"
    TURNED_OFF = "turned_off"


CHECK: Final = PostureCheck(
    check_id="partition_verification",
    scope=PostureScope.BROKER,
    setting=PARTITION_VERIFICATION,
    summary="No transaction opens on a partition of which its coordinator does not know.",
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.TURNED_OFF: Advice(
        consequence="A delayed request opens a transaction that no coordinator knows: it hangs, and readers with "
        "isolation.level=read_committed stop there.",
        fix=f"{OF_BROKERS}transaction.partition.verification.enable=true",
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every broker."""
    return FewCheck(check=CHECK, subject=subject, advice=ADVICE).judge_brokers(_judge)


def _judge(entry: ConfigEntry) -> Judged:
    is_off = entry.flag is False
    return (Verdict.BREACH, Why.TURNED_OFF) if is_off else (Verdict.OK, Why.VERIFIED)
