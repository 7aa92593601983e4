"""The cluster was upgraded, and its metadata version was not.

Judges:
    The level of the feature `metadata.version` against the highest that the brokers support.

What can go wrong:
    What the newer release has for exactly-once stays off: `transaction.version` 2 and eligible leader replicas need
    levels of Kafka 4.0 and 4.1. Below the level of 3.6 every shrinking of an ISR begins a leader epoch.

How to set it:
    `kafka-features.sh upgrade --release-version RELEASE`, when all brokers and controllers run the new release
    and nobody wants to go back. Not while a rolling upgrade is under way.

What it does not say:
    It is only information: an older level is supported. The brokers of a rolling upgrade differ in what they
    support, and the highest level of one of them is taken.
"""

from __future__ import annotations

from typing import Final

from rules.facts.config_keys import METADATA_FEATURE
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

CHECK: Final = PostureCheck(
    check_id="metadata_version",
    scope=PostureScope.CLUSTER,
    setting=METADATA_FEATURE,
    summary="The features of the installed release are in force.",
    severity=Severity.INFO,
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.BELOW_SUPPORTED: Advice(
        consequence="The brokers support {right}: what their release adds for exactly-once stays off until the "
        "level is raised. It cannot be lowered afterwards: there is no way back to the older release.",
        fix=f"{FEATURE}metadata.version={{right}}",
    ),
}
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge the level in force."""
    return FeatureCheck(base=FewCheck(check=CHECK, subject=subject, advice=ADVICE)).judge()
