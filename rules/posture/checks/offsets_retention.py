"""Coordinators delete the offsets of a group that rests between two runs.

Judges:
    `offsets.retention.minutes` of each broker against a day.

What can go wrong:
    The commits of a group without members are deleted after this time. When it comes back it begins at
    `auto.offset.reset`: at `earliest` it processes everything again that is still there, at `latest` it never
    sees what was written meanwhile.

How to set it:
    Longer than the longest pause of a group, such as a weekend; Kafka's default is seven days (10080). It is read at
    the start.

What it does not say:
    How long groups really pause.
"""

from __future__ import annotations

from typing import Final

from rules.facts.config_keys import OFFSETS_RETENTION_MINUTES
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
from rules.verdict import Severity, Verdict

DAY_MINUTES: Final = 1440


class Why(PostureReason):
    """Reasons of this check."""

    LONG_ENOUGH = "long_enough"
    SHORTER_THAN_A_DAY = "shorter_than_a_day"


CHECK: Final = PostureCheck(
    check_id="offsets_retention",
    scope=PostureScope.BROKER,
    setting=OFFSETS_RETENTION_MINUTES,
    summary="Committed offsets outlast the pause of a group.",
    severity=Severity.INFO,
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.SHORTER_THAN_A_DAY: Advice(
        consequence="A group that runs once a day finds no commit: it begins at auto.offset.reset, and reads twice "
        "or leaves out.",
        fix=f"{IN_FILE}offsets.retention.minutes=10080",
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every broker."""
    return FewCheck(check=CHECK, subject=subject, advice=ADVICE).judge_brokers(_judge)


def _judge(entry: ConfigEntry) -> Judged:
    if (entry.number or 0) < DAY_MINUTES:
        return Verdict.BREACH, Why.SHORTER_THAN_A_DAY
    return Verdict.OK, Why.LONG_ENOUGH
