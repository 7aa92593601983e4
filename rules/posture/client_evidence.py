"""What evidence says of clients, whose settings no request returns: lines with the partition and the time.

Batches and commits prove some settings of some clients. Of all others the line stays that nobody but the
client knows: nothing is said of a client of which no evidence speaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rules.evidence import Evidence
from rules.facts.identity import CONSUMER_OFFSETS
from rules.facts.permissions import Operation, ResourceType
from rules.facts.times import time_of
from rules.posture.clients import ClientAdvice, unseen_line
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureLine,
    PostureReason,
    Unseen,
    judgement_of_lines,
)
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict


def time_in_words(timestamp_us: int | None) -> str:
    """Return a time in UTC to the second, for a sentence; "not set" for a record without one."""
    if timestamp_us is None:
        return "not set"
    return f"{time_of(timestamp_us):%Y-%m-%d %H:%M:%S} UTC"


def named_line(  # noqa: PLR0913 - what a line is made of
    check: PostureCheck,
    name: str,
    reason: PostureReason,
    advice: Mapping[PostureReason, Advice],
    *,
    evidence: Evidence,
    words: Mapping[str, object],
    is_mild: bool = False,
) -> PostureLine:
    """Return the line of a client that evidence names; the evidence and `words` fill the advice."""
    filled = {"name": name, **evidence, **words}
    return PostureLine(
        check=check,
        name=name,
        setting=check.setting,
        value=None,
        source=None,
        verdict=Verdict.BREACH,
        reason=reason,
        consequence=advice[reason].consequence.format_map(filled),
        fix=advice[reason].fix.format_map(filled),
        is_mild=is_mild,
        evidence=evidence,
    )


def judge_evidence(
    check: PostureCheck,
    subject: PostureSubject,
    client: ClientAdvice,
    lines: Iterable[PostureLine],
    denied: Iterable[str] = (),
) -> PostureJudgement:
    """Return what evidence names, then the line of all other clients; `denied` are topics without READ."""
    unsampled = _denied_line(check, subject, client, list(denied))
    rest = unseen_line(check, subject, client)
    return judgement_of_lines(check, [*lines, *unsampled, rest])


def denied_topics(subject: PostureSubject, *, of_commits: bool = False) -> list[str]:
    """Return the topics that cannot be sampled without READ: `__consumer_offsets`, or all others."""
    denied = subject.snapshot.batch_samples.denied_topics
    return [name for name in denied if (name == CONSUMER_OFFSETS) is of_commits]


def _denied_line(
    check: PostureCheck, subject: PostureSubject, client: ClientAdvice, topics: list[str]
) -> Iterator[PostureLine]:
    if not topics:
        return
    more = "" if len(topics) == 1 else f" and {len(topics) - 1} more"
    needed = f"{Operation.READ} on {ResourceType.TOPIC} {topics[0]}{more}"
    yield PostureLine(
        check=check,
        name=f"{client.clients} of {topics[0]}{more}",
        setting=check.setting,
        value=None,
        source=None,
        verdict=Verdict.UNKNOWN,
        reason=Unseen.NOT_AUTHORIZED,
        consequence=f"Not known: batches are not sampled without {needed}.",
        fix=f"tidemark doctor --bootstrap-servers {subject.servers}",
        evidence={"needs": needed, "topics": len(topics)},
    )
