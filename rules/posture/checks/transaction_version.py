"""The cluster works with an older protocol of transactions than its release has.

Judges:
    The level of the feature `transaction.version`; 2 is right.

What can go wrong:
    Below 2 a producer keeps its epoch from one transaction to the next, so that a delayed request of an earlier
    transaction can become part of the next one (KIP-890). Records are then committed that were to be aborted,
    or a transaction hangs.

How to set it:
    `kafka-features.sh upgrade --feature transaction.version=2`, after all brokers run Kafka 4.0 or newer. New
    clusters of these releases have it; upgraded ones do not raise it by themselves.

What it does not say:
    A client has to speak it too: Java clients since 4.0 do, librdkafka does not. Releases before 4.0 have no such
    feature: UNKNOWN.
"""

from __future__ import annotations

from typing import Final

from rules.facts.config_keys import TRANSACTION_FEATURE
from rules.posture.commands import FEATURE
from rules.posture.features import FeatureCheck, Why
from rules.posture.judging import FewCheck
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
)
from rules.posture.subject import PostureSubject

RIGHT: Final = 2

CHECK: Final = PostureCheck(
    check_id="transaction_version",
    scope=PostureScope.CLUSTER,
    setting=TRANSACTION_FEATURE,
    summary="Every transaction has an epoch of its own (KIP-890).",
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.BELOW_SUPPORTED: Advice(
        consequence="A delayed request of an earlier transaction can become part of the next one: aborted records "
        "are committed, or a transaction hangs.",
        fix=f"{FEATURE}transaction.version={{right}}",
    ),
}
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge the level in force."""
    base = FewCheck(check=CHECK, subject=subject, advice=ADVICE)
    return FeatureCheck(base=base, enough=RIGHT).judge()
