"""A topic that is created without values of its own cannot hold exactly-once.

Judges:
    What the brokers give to new topics: `default.replication.factor`, `min.insync.replicas` and
    `unclean.leader.election.enable`.

What can go wrong:
    A topic that an application, Kafka Streams or Kafka Connect creates, or that appears by
    `auto.create.topics.enable`, gets one replica by Kafka's own default, and acknowledges with a single one.

How to set it:
    `default.replication.factor=3` in server.properties of every broker, where there are three or more: with fewer
    no topic could be created. `min.insync.replicas=2` and
    `unclean.leader.election.enable=false` can be set at run time for all brokers, and count at once for all topics
    without values of their own.

What it does not say:
    It is only information: topics that exist are judged by themselves. Where it is reported for
    `min.insync.replicas` on a cluster with one or two brokers, more brokers come first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rules.facts.config_keys import DEFAULT_REPLICATION, MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION
from rules.facts.configs import ConfigEntry
from rules.posture.commands import IN_FILE, OF_BROKERS, WITH_BROKERS
from rules.posture.judging import FewCheck, Judged
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
)
from rules.posture.setting_values import MIN_ISR, REPLICAS
from rules.posture.subject import PostureSubject
from rules.verdict import Severity, Verdict


class Why(PostureReason):
    """Reasons of this check."""

    SAFE = "safe"
    TOO_FEW_REPLICAS = "too_few_replicas"
    ONE_ACKNOWLEDGES = "one_acknowledges"
    UNCLEAN_ALLOWED = "unclean_allowed"


CHECK: Final = PostureCheck(
    check_id="new_topics",
    scope=PostureScope.BROKER,
    setting=DEFAULT_REPLICATION,
    summary="A new topic is set up so that nothing acknowledged is lost.",
    severity=Severity.INFO,
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.TOO_FEW_REPLICAS: Advice(
        consequence="A topic that is created without a number of replicas gets {value}.",
        fix=f"{WITH_BROKERS}{IN_FILE}default.replication.factor=3",
    ),
    Why.ONE_ACKNOWLEDGES: Advice(
        consequence="In a topic without a value of its own a single broker acknowledges.",
        fix=f"{OF_BROKERS}min.insync.replicas=2",
    ),
    Why.UNCLEAN_ALLOWED: Advice(
        consequence="In a topic without a value of its own a replica may be elected that lacks acknowledged "
        "records.",
        fix=f"{OF_BROKERS}unclean.leader.election.enable=false",
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge the three settings of every broker."""
    check = FewCheck(check=CHECK, subject=subject, advice=ADVICE)
    return check.judge(
        [
            check.broker(str(broker), entry, decide, setting=setting)
            for setting, decide in DECISIONS.items()
            for broker, entry in subject.broker_values(setting).items()
        ]
    )


def _judge_replicas(entry: ConfigEntry) -> Judged:
    is_right = (entry.number or 0) >= REPLICAS
    return (Verdict.OK, Why.SAFE) if is_right else (Verdict.BREACH, Why.TOO_FEW_REPLICAS)


def _judge_minimum(entry: ConfigEntry) -> Judged:
    is_right = (entry.number or 0) >= MIN_ISR
    return (Verdict.OK, Why.SAFE) if is_right else (Verdict.BREACH, Why.ONE_ACKNOWLEDGES)


def _judge_unclean(entry: ConfigEntry) -> Judged:
    return (Verdict.BREACH, Why.UNCLEAN_ALLOWED) if entry.flag else (Verdict.OK, Why.SAFE)


DECISIONS: Final[dict[str, Callable[[ConfigEntry], Judged]]] = {
    DEFAULT_REPLICATION: _judge_replicas,
    MIN_INSYNC_REPLICAS: _judge_minimum,
    UNCLEAN_ELECTION: _judge_unclean,
}
