"""Eligible leader replicas are not in force.

Judges:
    The level of the feature `eligible.leader.replicas.version`; 1 is right.

What can go wrong:
    Without it (KIP-966) the ISR may shrink to a single replica. If that one is lost without a clean shutdown,
    the choice is between waiting for its disk and an unclean election, which loses records. With it, replicas
    that left the ISR below `min.insync.replicas` are remembered as long as they have everything that was
    acknowledged, and are elected without a loss.

How to set it:
    `kafka-features.sh upgrade --feature eligible.leader.replicas.version=1`, with Kafka 4.0 or newer. New clusters
    have it since 4.1. It moves `min.insync.replicas` of brokers to a value for the whole cluster.

What it does not say:
    It protects topics with `min.insync.replicas` of 2 or more only. Releases before 4.0 have no such feature:
    UNKNOWN. It is only information.
"""

from __future__ import annotations

from typing import Final

from rules.facts.config_keys import ELR_FEATURE
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
from rules.verdict import Severity

RIGHT: Final = 1

CHECK: Final = PostureCheck(
    check_id="eligible_leader_replicas",
    scope=PostureScope.CLUSTER,
    setting=ELR_FEATURE,
    summary="Replicas outside the ISR that have everything can be elected (KIP-966).",
    severity=Severity.INFO,
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.BELOW_SUPPORTED: Advice(
        consequence="When the last replica of an ISR is lost, there is no other one that is known to have "
        "everything: the partition waits for its disk, or loses records.",
        fix=f"{FEATURE}eligible.leader.replicas.version={{right}}",
    ),
}
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge the level in force."""
    base = FewCheck(check=CHECK, subject=subject, advice=ADVICE)
    return FeatureCheck(base=base, enough=RIGHT).judge()
