"""A topic has fewer than three replicas.

Judges:
    The number of replicas of each topic, of the partition that has fewest. The cluster's own topics have
    checks of their own.

What can go wrong:
    With one replica, the loss of one disk loses everything that was acknowledged, and every restart of the
    broker stops the partition. With two, either writing stops while one of them is away
    (`min.insync.replicas` = 2), or records are acknowledged that only one broker has
    (`min.insync.replicas` = 1).

How to set it:
    Write the new replicas of every partition of the topic into a file and have Kafka copy them:
    `{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}`. A cluster
    of fewer than three brokers needs more brokers first. Topics that are created later get
    `default.replication.factor`.

What it does not say:
    Whether the replicas are on different racks. A topic on which no transaction was seen is only
    information: whether its records matter is not known here.
"""

from __future__ import annotations

from typing import Final

from rules.posture.commands import REASSIGN
from rules.posture.judging import PostureCase, TopicCheck, right, wrong
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
    Unseen,
)
from rules.posture.setting_values import REPLICAS
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict

CHECK: Final = PostureCheck(
    check_id="topic_replication",
    scope=PostureScope.TOPIC,
    setting="replication.factor",
    summary="A topic has at least three replicas.",
)


class Why(PostureReason):
    """Reasons of this check."""

    ENOUGH = "enough"
    SINGLE_REPLICA = "single_replica"
    TWO_REPLICAS = "two_replicas"


ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.SINGLE_REPLICA: Advice(
        consequence="Only one broker has the records: its disk is the only copy of what was acknowledged, and "
        "while it restarts nobody reads or writes.",
        fix=REASSIGN,
    ),
    Why.TWO_REPLICAS: Advice(
        consequence="While one of two replicas is away, either nothing can be written with acks=all or records "
        "are acknowledged that only one broker has.",
        fix=REASSIGN,
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every topic."""
    replication = subject.replication.take(subject.topics)

    def replicas(position: int) -> str | None:
        count = subject.replication[position]
        return None if count is None else str(count)

    check = TopicCheck(
        check=CHECK,
        subject=subject,
        positions=subject.topics,
        advice=ADVICE,
        value=replicas,
        evidence=lambda _: {"brokers": len(subject.snapshot.brokers)},
    )
    return check.judge(
        [
            PostureCase(~replication.valid, Verdict.UNKNOWN, Unseen.NOT_READ),
            right(replication.values >= REPLICAS, Why.ENOUGH),
            wrong(replication.values == 1, Why.SINGLE_REPLICA),
            wrong(replication.values < REPLICAS, Why.TWO_REPLICAS),
        ],
        Why.ENOUGH,
    )
