"""Offsets are committed with what was processed.

Judges:
    `enable.auto.commit` of consumers, by the commits of their group: one of a transaction is in a transactional batch of
    `__consumer_offsets`. A group is named that committed outside of transactions between two commits in
    transactions, three times or more while it had members, with the partition and the times, for 24 hours.

What can go wrong:
    Offsets that are committed by the clock say nothing of what was processed: after a crash records are processed twice, or
    never where they were committed before they were processed. In a consume-transform-produce pipeline the offsets
    belong into the transaction.

How to set it:
    `enable.auto.commit=false`, and `sendOffsetsToTransaction` (Java) or `send_offsets_to_transaction` (librdkafka) in the
    transaction. The default of both is `true`.

What it does not say:
    Of a group whose commits are all plain it says nothing: which producer and which consumer are one application cannot be seen.
    Nor who committed: a client that commits by itself, or a call in its code. Sampling needs READ on
    `__consumer_offsets`, and a running service.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.facts.commit_kinds import GroupCommits, PlainCommit
from rules.facts.times import iso_time_or_none
from rules.posture.client_evidence import (
    denied_topics,
    judge_evidence,
    named_line,
    time_in_words,
)
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

CONFIRMED_BY: Final = 3  # plain commits between transactional ones: one may be a person's


class Why(PostureReason):
    """Reasons of this check."""

    COMMITS_OUTSIDE_TRANSACTIONS = "commits_outside_transactions"


CHECK: Final = PostureCheck(
    check_id="client_auto_commit",
    scope=PostureScope.CLIENT,
    setting="enable.auto.commit",
    summary="Offsets are committed with what was processed.",
)
CLIENT: Final = ClientAdvice(
    clients="consumers",
    consequence="Offsets are committed by the clock: after a crash records are processed twice, or never.",
    fix="enable.auto.commit=false",
)
ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.COMMITS_OUTSIDE_TRANSACTIONS: Advice(
        consequence="Group {group} commits in transactions of producer id {producer_id}, and between them outside of "
        "any, last for {topic}-{partition} with record time {recorded}, observed {observed}. After a crash in between, "
        "input counts as read whose output was aborted.",
        fix=CLIENT.fix,
    ),
    **CLIENT.advice,
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Name the groups that mix both kinds of commits, and list the configuration to compare."""
    denied = denied_topics(subject, of_commits=True)
    return judge_evidence(CHECK, subject, CLIENT, _lines(subject), denied)


def _lines(subject: PostureSubject) -> Iterator[PostureLine]:
    kinds = subject.clients.commit_kinds
    for group in sorted(kinds):
        last = kinds[group].last_between
        if kinds[group].between >= CONFIRMED_BY and last is not None:
            yield _line(group, kinds[group], last)


def _line(group: str, commits: GroupCommits, last: PlainCommit) -> PostureLine:
    first = commits.first_between
    return named_line(
        CHECK,
        f"group {group}",
        Why.COMMITS_OUTSIDE_TRANSACTIONS,
        ADVICE,
        words={
            "recorded": time_in_words(last.record_us),
            "observed": time_in_words(last.seen_us),
        },
        evidence={
            "group": group,
            "topic": last.name.topic,
            "partition": last.name.partition,
            "producer_id": commits.producer_id,
            "times": commits.between,
            "last_record_time": iso_time_or_none(last.record_us),
            "first_observed_at": iso_time_or_none(None if first is None else first.seen_us),
            "last_observed_at": iso_time_or_none(last.seen_us),
        },
    )
