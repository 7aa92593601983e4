"""A topic allows unclean leader elections.

Judges:
    The effective `unclean.leader.election.enable` of each topic with more than one replica.

What can go wrong:
    When no replica in the ISR is alive, Kafka elects one that lacks acknowledged records, and they are lost.
    Committed transactions can vanish without an error on any side.

    Eligible leader replicas (ELR, KIP-966) make it rarer, and do not prevent it: with the feature
    `eligible.leader.replicas.version` at 1 a replica that left the ISR below `min.insync.replicas` still has
    everything that was acknowledged and is elected first. Only when these are gone too, a stale replica is
    elected. With `min.insync.replicas` = 1 there never is an eligible replica outside the ISR.

How to set it:
    `kafka-configs.sh --alter --entity-type topics --entity-name orders --delete-config
    unclean.leader.election.enable` where the topic has its own value; Kafka's default is `false`. A
    partition that has no other replica left then stays offline until a person decides (`kafka-leader-election.sh
    --election-type unclean`).

What it does not say:
    Unclean elections happen without it as well: by hand, and with ELR of the last known leader. Those are
    found by the rule unclean_leader_election when they happen.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.facts.config_keys import ELR_FEATURE, MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION
from rules.posture.commands import OF_TOPIC
from rules.posture.judging import TopicCheck, right, wrong
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
)
from rules.posture.subject import PostureSubject


class Why(PostureReason):
    """Reasons of this check."""

    CLEAN_ONLY = "clean_only"
    ALLOWED = "allowed"
    ALLOWED_AFTER_ELR = "allowed_after_elr"


CHECK: Final = PostureCheck(
    check_id="topic_unclean_election",
    scope=PostureScope.TOPIC,
    setting=UNCLEAN_ELECTION,
    summary="Only a replica that has all acknowledged records becomes leader.",
)

FIX: Final = f"{OF_TOPIC}unclean.leader.election.enable=false"
ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.ALLOWED: Advice(
        consequence="When no replica in the ISR is alive, one is elected that lacks acknowledged records: they "
        "are lost.",
        fix=FIX,
    ),
    Why.ALLOWED_AFTER_ELR: Advice(
        consequence="When neither the ISR nor the eligible leader replicas (ELR) have a replica that is alive, one "
        "is elected that lacks acknowledged records: they are lost.",
        fix=FIX,
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every topic with more than one replica."""
    fewest = subject.replication.take(subject.topics)
    positions = subject.topics[~(fewest.valid & (fewest.values == 1))]
    check = TopicCheck(check=CHECK, subject=subject, positions=positions, advice=ADVICE)
    unclean, minimum = check.flags(UNCLEAN_ELECTION), check.values(MIN_INSYNC_REPLICAS)
    features = subject.configs.features
    has_elr = features is not None and (features.level(ELR_FEATURE) or 0) > 0
    keeps_eligible = minimum.valid & (minimum.values > 1) & np.bool_(has_elr)
    return check.judge(
        [
            *check.unseen_cases(unclean.valid),
            right(unclean.values == 0, Why.CLEAN_ONLY),
            wrong(keeps_eligible, Why.ALLOWED_AFTER_ELR),
            wrong(unclean.values == 1, Why.ALLOWED),
        ],
        Why.CLEAN_ONLY,
    )
