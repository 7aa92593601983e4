"""A group lags behind a topic for so long that retention is about to delete what it has not read.

Judges:
    `retention.ms` of each topic that is not only compacted, against the longest lag in seconds of the groups that
    read it.

What can go wrong:
    Retention deletes by age, whether or not somebody has read: a group that lags for longer loses records
    that it was promised, and goes on at `auto.offset.reset`.

How to set it:
    `retention.ms` (-1: for ever) longer than the longest outage of a reader, such as a weekend. Raise it now, and
    look after the group then.

What it does not say:
    `retention.bytes` deletes by size, which no request shows here: where it is set, records may go earlier. The lag
    in seconds needs history: a single round of `tidemark posture --bootstrap-servers` has none, and a
    topic with a lag is then UNKNOWN. What was deleted unread already is the rule consumer_data_expired.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.config_keys import CLEANUP_POLICY, RETENTION_BYTES, RETENTION_MS
from rules.posture.commands import OF_TOPIC
from rules.posture.judging import PostureCase, TopicCheck, right, wrong
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
)
from rules.posture.setting_values import DELETE
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict

NEAR: Final = 0.5  # of the retention: half is left to repair a group
US_PER_MS: Final = 1000


class Why(PostureReason):
    """Reasons of this check."""

    LONG_ENOUGH = "long_enough"
    NO_LAG = "no_lag"  # no group has anything left to read
    LAG_NEAR_RETENTION = "lag_near_retention"
    LAG_TIME_UNKNOWN = "lag_time_unknown"


CHECK: Final = PostureCheck(
    check_id="topic_retention",
    scope=PostureScope.TOPIC,
    setting=RETENTION_MS,
    summary="Records stay until every group has read them.",
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.LAG_NEAR_RETENTION: Advice(
        consequence="A group lags by {lag_seconds} s, and records are deleted after {value} ms: what it has not "
        "read is deleted before it catches up.",
        fix=f"{OF_TOPIC}retention.ms={{longer}}",
    ),
    Why.LAG_TIME_UNKNOWN: Advice(
        consequence="A group lags, and for how long is not known: a single round shows only offsets, and history "
        "has to reach back to what the group has not read.",
        fix="tidemark posture --server URL",
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every topic whose records expire and that a group reads."""
    lags = _Lags(subject)
    positions = subject.topics[lags.is_read[subject.topics]]

    def words(position: int) -> dict[str, object]:
        longest = lags.longest_ms[position] or 0
        return {"lag_seconds": longest // 1000, "longer": 4 * longest}

    check = TopicCheck(
        check=CHECK,
        subject=subject,
        positions=positions,
        advice=ADVICE,
        words=words,
        evidence=lambda position: {
            "lag_ms": lags.longest_ms[position],
            "retention_bytes": subject.topic_config(position).number(RETENTION_BYTES),
        },
    )
    retention, longest = check.values(RETENTION_MS), lags.longest_ms.take(positions)
    policies = check.texts(CLEANUP_POLICY)
    expires = np.array([DELETE in (policy or "") for policy in policies], np.bool_)
    return check.judge(
        [
            right(~lags.lagging[positions], Why.NO_LAG),
            *check.unseen_cases(retention.valid),
            right((retention.values < 0) | ~expires, Why.LONG_ENOUGH),
            PostureCase(~longest.valid, Verdict.UNKNOWN, Why.LAG_TIME_UNKNOWN),
            wrong(longest.values > NEAR * retention.values, Why.LAG_NEAR_RETENTION),
        ],
        Why.LONG_ENOUGH,
    )


class _Lags:
    """The lags of the groups that read each topic."""

    def __init__(self, subject: PostureSubject) -> None:
        snapshot = subject.snapshot
        topics, commits = len(snapshot.partitions.index.topics), snapshot.commits
        topic_of_commit = snapshot.partitions.index.topic_of_row[commits.row]
        lag = commits.read_committed_lag(snapshot.offsets)
        nothing = commits.nothing_to_read  # behind its commit are markers alone
        is_behind = lag.valid & (lag.values > 0) & ~(nothing.valid & (nothing.values == 1))
        self.is_read = _marked(topics, topic_of_commit)
        self.lagging = _marked(topics, topic_of_commit[is_behind])
        self.longest_ms = self._longest(subject, topic_of_commit, is_behind)

    def _longest(self, subject: PostureSubject, topics: Int64s, behind: Bools) -> Column:
        """Return per topic the longest lag of a group in milliseconds, absent where one is not known."""
        count = len(self.is_read)
        if subject.time_lags is None:
            return Column.absent(count)
        times = subject.time_lags.read_committed
        least = np.where(times.lag_us.valid, times.lag_us.values, times.at_least_us.values)
        is_known = times.lag_us.valid | times.at_least_us.valid
        longest = np.zeros(count, np.int64)
        np.maximum.at(longest, topics[is_known], least[is_known] // US_PER_MS)
        return Column.known(longest).where(~_marked(count, topics[behind & ~is_known]))


def _marked(count: int, positions: Int64s) -> Bools:
    mask = np.zeros(count, np.bool_)
    mask[positions] = True
    return mask
