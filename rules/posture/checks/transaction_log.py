"""The topic `__transaction_state` is not set up so that transactions last.

Judges:
    Replicas, `min.insync.replicas`, `cleanup.policy`, `unclean.leader.election.enable`, `max.message.bytes` and the
    number of partitions of `__transaction_state`. As long as it does not exist: the brokers'
    `transaction.state.log.replication.factor` and `transaction.state.log.min.isr`.

What can go wrong:
    The coordinators keep in it which transactions are open, decided and ended, and who is fenced. A write
    that is lost there undoes a decision that producers were told: a committed transaction is open again, or
    hangs, and a fenced producer may write. Partitions that are added give transactional ids other coordinators,
    which do not know them.

How to set it:
    Three replicas, `min.insync.replicas=2`, `cleanup.policy=compact`, no unclean elections, the default
    `max.message.bytes` (1048588), and never more partitions than it was created with.

What it does not say:
    `transaction.state.log.num.partitions` has no effect once the topic exists: that it differs from the number of
    partitions is only information.
"""

from __future__ import annotations

from typing import Final

from rules.facts.config_keys import (
    TRANSACTION_LOG_MIN_ISR,
    TRANSACTION_LOG_PARTITIONS,
    TRANSACTION_LOG_REPLICATION,
)
from rules.facts.identity import TRANSACTION_STATE
from rules.posture.internal_topics import MILDER, InternalTopic, Why, judge_internal
from rules.posture.judging import FewCheck
from rules.posture.line import PostureCheck, PostureJudgement, PostureScope
from rules.posture.subject import PostureSubject

CHECK: Final = PostureCheck(
    check_id="transaction_log",
    scope=PostureScope.TOPIC,
    setting=TRANSACTION_LOG_REPLICATION,
    summary="What transaction coordinators decide survives the loss of a broker.",
    milder=MILDER,
)
TOPIC: Final = InternalTopic(
    name=TRANSACTION_STATE,
    holds="decisions about transactions",
    replication=TRANSACTION_LOG_REPLICATION,
    partitions=TRANSACTION_LOG_PARTITIONS,
    min_isr=TRANSACTION_LOG_MIN_ISR,
)
ADVICE: Final = TOPIC.advice
REASONS: Final = tuple(Why)


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge the settings of the topic."""
    if subject.transaction_log_hidden:
        return FewCheck(check=CHECK, subject=subject, advice=ADVICE).judge([])
    return judge_internal(FewCheck(check=CHECK, subject=subject, advice=ADVICE), TOPIC)
