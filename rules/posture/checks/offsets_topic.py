"""The topic `__consumer_offsets` is not set up so that committed offsets last.

Judges:
    Replicas, `min.insync.replicas`, `cleanup.policy`, `unclean.leader.election.enable`, `max.message.bytes` and the
    number of partitions of `__consumer_offsets`. As long as it does not exist: the brokers'
    `offsets.topic.replication.factor`.

What can go wrong:
    A group goes on where its last commit says. A commit that is lost makes it read records again, or, without
    any commit left, begin at `auto.offset.reset`: records are processed twice, or not at all. Offsets that were
    committed in a transaction are lost while its records stay.

How to set it:
    Three replicas, `min.insync.replicas=2`, `cleanup.policy=compact`, no unclean elections, the default
    `max.message.bytes` (1048588), and never more partitions than it was created with. It has no setting of its
    own for `min.insync.replicas`: that of the topic, or of the cluster.

What it does not say:
    `offsets.topic.num.partitions` has no effect once the topic exists: that it differs from the number of
    partitions is only information.
"""

from __future__ import annotations

from typing import Final

from rules.facts.config_keys import OFFSETS_PARTITIONS, OFFSETS_REPLICATION
from rules.facts.identity import CONSUMER_OFFSETS
from rules.posture.internal_topics import MILDER, InternalTopic, Why, judge_internal
from rules.posture.judging import FewCheck
from rules.posture.line import PostureCheck, PostureJudgement, PostureScope
from rules.posture.subject import PostureSubject

CHECK: Final = PostureCheck(
    check_id="offsets_topic",
    scope=PostureScope.TOPIC,
    setting=OFFSETS_REPLICATION,
    summary="What groups committed survives the loss of a broker.",
    milder=MILDER,
)
TOPIC: Final = InternalTopic(
    name=CONSUMER_OFFSETS,
    holds="committed offsets",
    replication=OFFSETS_REPLICATION,
    partitions=OFFSETS_PARTITIONS,
)
ADVICE: Final = TOPIC.advice
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge the settings of the topic."""
    check = FewCheck(check=CHECK, subject=subject, advice=ADVICE)
    return check.judge([]) if subject.offsets_topic_hidden else judge_internal(check, TOPIC)
