"""Readers get committed records only.

Judges:
    `isolation.level` of consumers, by their commits: a reader with `read_committed` gets nothing beyond the last
    stable offset (LSO), so that its commits stay there. A group is named for a partition on which two rounds saw it
    commit beyond the LSO while a transaction was open, with the offsets and the times, for 24 hours. The commits
    of a round are read before its LSO, and an LSO only grows under one leader epoch, so that this is no race. It counts
    only where the group has members and its commit went forward since the round before under the same leader:
    a reset by hand and a new leader prove nothing. Groups of Kafka's console consumer are only information.

What can go wrong:
    With `read_uncommitted` a consumer reads records of transactions that are open, or were aborted: what was to be undone is
    processed, and a retry of the transaction is processed again.

How to set it:
    `isolation.level=read_committed` for every group that reads a topic which carries transactions. **The default of Java
    is `read_uncommitted`**; that of librdkafka is `read_committed`.

What it does not say:
    A group that never commits beyond an open transaction is not named, such as one that is behind: the line of all others stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.facts.commits_above_lso import CommitAboveLso
from rules.facts.identity import TopicPartition
from rules.facts.times import iso_time_or_none
from rules.posture.client_evidence import judge_evidence, named_line, time_in_words
from rules.posture.clients import ClientAdvice
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureLine,
    PostureReason,
    PostureScope,
)
from rules.posture.subject import PostureSubject

CONFIRMED_BY: Final = 2  # rounds
CONSOLE: Final = "console-consumer-"  # the groups that Kafka's console consumer makes up


class Why(PostureReason):
    """Reasons of this check."""

    READS_UNCOMMITTED = "reads_uncommitted"


CHECK: Final = PostureCheck(
    check_id="client_isolation",
    scope=PostureScope.CLIENT,
    setting="isolation.level",
    summary="Readers get committed records only.",
)
CLIENT: Final = ClientAdvice(
    clients="consumers",
    consequence="A reader with read_uncommitted, Java's default, processes records of aborted transactions.",
    fix="isolation.level=read_committed",
)
ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.READS_UNCOMMITTED: Advice(
        consequence="Group {group} committed offset {committed_offset} on {topic}-{partition} while transactions "
        "were open from offset {last_stable_offset} on, observed {observed}: it reads records that may still be "
        "aborted, and counts them as processed.",
        fix=CLIENT.fix,
    ),
    **CLIENT.advice,
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Name the groups that read uncommitted records, and list the configuration to compare."""
    return judge_evidence(CHECK, subject, CLIENT, _lines(subject))


def _lines(subject: PostureSubject) -> Iterator[PostureLine]:
    above = subject.clients.above_lso
    for group, name in sorted(above):
        if above[group, name].rounds >= CONFIRMED_BY:
            yield _line(group, name, above[group, name])


def _line(group: str, name: TopicPartition, seen: CommitAboveLso) -> PostureLine:
    return named_line(
        CHECK,
        f"group {group}",
        Why.READS_UNCOMMITTED,
        ADVICE,
        words={"observed": time_in_words(seen.last_seen_us)},
        is_mild=group.startswith(CONSOLE),
        evidence={
            "group": group,
            "topic": name.topic,
            "partition": name.partition,
            "committed_offset": seen.committed_offset,
            "last_stable_offset": seen.last_stable_offset,
            "high_watermark": seen.high_watermark,
            "rounds": seen.rounds,
            "first_observed_at": iso_time_or_none(seen.first_seen_us),
            "last_observed_at": iso_time_or_none(seen.last_seen_us),
        },
    )
