"""A compacted topic carries transactions and is read by a group.

Judges:
    `cleanup.policy` of each topic on which a transaction was seen, whether a group has committed offsets on it,
    and whether `min.compaction.lag.ms` is a week or more.

What can go wrong:
    Compaction keeps the last record of a key. A group that lags never reads the records before it, although
    they were committed, and no offset says so: for such a group "exactly once" is "at most once".
    Tombstones disappear `delete.retention.ms` after they were compacted, and with them the only sign of a
    deletion.

How to set it:
    `min.compaction.lag.ms` longer than a group may lag: compaction leaves newer records alone. Where only the latest
    value of a key matters, the setting is right. `cleanup.policy=delete` keeps every record for `retention.ms` only, and
    **deletes all older keys at once**: nobody who reads the topic as a table may need them, and `retention.ms` is
    set first.

What it does not say:
    State topics are compacted on purpose: changelogs of Kafka Streams and the topics of Kafka Connect are read
    from their beginning, without a group's commits, and are not reported. Who reads without committing
    is not seen.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.facts.column import Bools
from rules.facts.config_keys import CLEANUP_POLICY
from rules.posture.commands import OF_TOPIC
from rules.posture.judging import TopicCheck, right, wrong
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
)
from rules.posture.setting_values import COMPACT
from rules.posture.subject import PostureSubject
from rules.verdict import Severity

MIN_COMPACTION_LAG: Final = "min.compaction.lag.ms"
LONG_MS: Final = 604_800_000  # a week, within which a group is repaired


class Why(PostureReason):
    """Reasons of this check."""

    NOT_COMPACTED = "not_compacted"
    READ_AS_STATE = "read_as_state"  # no group commits on it
    COMPACTED_LATE = "compacted_late"  # `min.compaction.lag.ms` is a week or more
    OVERWRITTEN_BEFORE_READ = "overwritten_before_read"


CHECK: Final = PostureCheck(
    check_id="topic_compaction",
    scope=PostureScope.TOPIC,
    setting=CLEANUP_POLICY,
    summary="A topic that carries transactions to a group keeps every record.",
    severity=Severity.INFO,
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.OVERWRITTEN_BEFORE_READ: Advice(
        consequence="A group that lags never reads a record whose key was written again (min.compaction.lag.ms "
        "is {compaction_lag}): right for a table, wrong for a stream of events.",
        fix=f"{OF_TOPIC}min.compaction.lag.ms={LONG_MS}",
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every topic on which a transaction was seen."""
    positions = subject.topics[subject.carries_transactions[subject.topics]]

    def words(position: int) -> dict[str, object]:
        return {"compaction_lag": subject.topic_config(position).number(MIN_COMPACTION_LAG)}

    check = TopicCheck(
        check=CHECK, subject=subject, positions=positions, advice=ADVICE, words=words
    )
    policies, lag = check.texts(CLEANUP_POLICY), check.values(MIN_COMPACTION_LAG)
    is_set = np.array([policy is not None for policy in policies], np.bool_)
    is_compacted = np.array([COMPACT in (policy or "") for policy in policies], np.bool_)
    return check.judge(
        [
            *check.unseen_cases(is_set),
            right(~is_compacted, Why.NOT_COMPACTED),
            right(lag.valid & (lag.values >= LONG_MS), Why.COMPACTED_LATE),
            wrong(_are_read(subject)[positions], Why.OVERWRITTEN_BEFORE_READ),
        ],
        Why.READ_AS_STATE,
    )


def _are_read(subject: PostureSubject) -> Bools:
    """Mark the topics on which a group has committed an offset."""
    index, commits = subject.snapshot.partitions.index, subject.snapshot.commits
    mask = np.zeros(len(index.topics), np.bool_)
    mask[index.topic_of_row[commits.row]] = True
    return mask
