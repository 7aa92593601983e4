"""`min.insync.replicas` of a topic does not fit its replicas.

Judges:
    The effective `min.insync.replicas` of each topic with more than one replica, against the replicas of the
    partition that has fewest.

What can go wrong:
    With 1, a producer with acks=all gets its acknowledgement as soon as a single broker has the records: while
    the others are out of the ISR, that broker's disk is the only copy. Where it is as high as the number
    of replicas, one broker that restarts stops all writing with acks=all; nothing is lost.

How to set it:
    2, with three replicas. For one topic:
    `kafka-configs.sh --alter --entity-type topics --entity-name orders --add-config min.insync.replicas=2`; for
    all topics without a value of their own: `--entity-type brokers --entity-default`. With two replicas
    the third one is missing first: with a minimum of 2 each restart of a broker stops writing, with 1 a single broker
    acknowledges meanwhile. With
    `eligible.leader.replicas.version` 1 the value of the cluster is always of the latter kind.

What it does not say:
    Whether producers use acks=all: `min.insync.replicas` means nothing to the others. A topic with a
    single replica is reported by topic_replication.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.facts.config_keys import MIN_INSYNC_REPLICAS
from rules.posture.commands import OF_TOPIC, REASSIGN
from rules.posture.judging import PostureCase, TopicCheck, right, wrong
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
    Unseen,
)
from rules.posture.setting_values import MIN_ISR
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict


class Why(PostureReason):
    """Reasons of this check."""

    ENOUGH = "enough"
    ONE_ACKNOWLEDGES = "one_acknowledges"
    NO_REPLICA_MAY_FAIL = "no_replica_may_fail"


CHECK: Final = PostureCheck(
    check_id="topic_min_insync_replicas",
    scope=PostureScope.TOPIC,
    setting=MIN_INSYNC_REPLICAS,
    summary="Records are acknowledged by at least two replicas, and one replica may be away.",
    milder=frozenset({Why.NO_REPLICA_MAY_FAIL}),
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.ONE_ACKNOWLEDGES: Advice(
        consequence="While the other replicas are out of the ISR, a single broker acknowledges: if its disk is "
        "lost, or another replica is elected, acknowledged records are lost.",
        fix="{safe}",
    ),
    Why.NO_REPLICA_MAY_FAIL: Advice(
        consequence="It is as high as the number of replicas ({replicas}): one broker that restarts stops all "
        "writing with acks=all. Nothing is lost.",
        fix="{enough}",
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every topic with more than one replica."""
    fewest = subject.replication.take(subject.topics)
    positions = subject.topics[~(fewest.valid & (fewest.values == 1))]
    replicas = subject.replication.take(positions)

    def words(position: int) -> dict[str, object]:
        count, name = subject.replication[position] or 0, subject.topic_name(position)
        has_spare = count > MIN_ISR
        raised = f"{OF_TOPIC}min.insync.replicas={MIN_ISR}" if has_spare else REASSIGN
        lowered = f"{OF_TOPIC}min.insync.replicas={count - 1}" if has_spare else REASSIGN
        filled = {"servers": subject.servers, "name": name}
        return {
            "replicas": count,
            "safe": raised.format_map(filled),
            "enough": lowered.format_map(filled),
        }

    check = TopicCheck(
        check=CHECK, subject=subject, positions=positions, advice=ADVICE, words=words
    )
    minimum = check.values(MIN_INSYNC_REPLICAS)
    return check.judge(
        [
            *check.unseen_cases(minimum.valid),
            PostureCase(~replicas.valid, Verdict.UNKNOWN, Unseen.NOT_READ),
            wrong(minimum.values < MIN_ISR, Why.ONE_ACKNOWLEDGES),
            wrong(minimum.values >= replicas.values, Why.NO_REPLICA_MAY_FAIL),
            right(np.ones(len(positions), np.bool_), Why.ENOUGH),
        ],
        Why.ENOUGH,
    )
