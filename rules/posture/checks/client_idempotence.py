"""A batch that is sent again is appended once.

Judges:
    `enable.idempotence` of producers, by their batches: those of an idempotent producer carry its producer id, and no
    other ones do (KIP-98). Each round samples the newest batches of some partitions whose log grew; every partition
    is named on which a batch without a producer id was sampled within 24 hours, with the offset and the times. Beside
    idempotent producers or transactions it is a warning, alone it is information. Topics that are only compacted are left out as
    long as nobody else writes to them: the last record of a key counts there, and Kafka Connect's workers write to their own topics so.

What can go wrong:
    Without it a retry after a lost answer is appended a second time, and with more than one request in flight in another
    order. A producer with a `transactional.id` always has it.

How to set it:
    `enable.idempotence=true` and `acks=all`. `true` is the default of Java clients since 3.0, as long as `acks` is not set to less than
    `all`, which silently switches it off; it is **not that of librdkafka**, whose default is `false`. An application that
    restarts also needs a `transactional.id`, or its own way to recognise what it has sent.

What it does not say:
    Which client it was: a batch has no client id. Which `acks` it used: with `acks=1` a leader change also loses
    records that the client takes for written. A producer that was not sampled is not named, so that the line of all
    others stays. Sampling needs READ on the topic, and a running service.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.facts.config_keys import CLEANUP_POLICY
from rules.facts.times import iso_time_or_none
from rules.facts.writer_memory import Writer, WrittenPartition
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
from rules.posture.setting_values import COMPACT
from rules.posture.subject import PostureSubject


class Why(PostureReason):
    """Reasons of this check."""

    NOT_IDEMPOTENT = "not_idempotent"  # beside idempotent producers or transactions
    ONLY_NOT_IDEMPOTENT = "only_not_idempotent"  # nothing else was seen there


CHECK: Final = PostureCheck(
    check_id="client_idempotence",
    scope=PostureScope.CLIENT,
    setting="enable.idempotence",
    summary="A batch that is sent again is appended once.",
    milder=frozenset({Why.ONLY_NOT_IDEMPOTENT}),
)
CLIENT: Final = ClientAdvice(
    clients="producers",
    consequence="A retry may be appended a second time, or in another order. librdkafka's default is false.",
    fix="enable.idempotence=true",
)
_SEEN: Final = Advice(
    consequence="A producer that is not idempotent wrote to {topic}-{partition}, last at offset {last_offset} with "
    "record time {recorded}, observed {observed}. What it sends again is appended again, and may be out of order. "
    "Which acks it uses cannot be seen.",
    fix=CLIENT.fix,
)
ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.NOT_IDEMPOTENT: _SEEN,
    Why.ONLY_NOT_IDEMPOTENT: _SEEN,
    **CLIENT.advice,
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Name the partitions that such a producer writes to, and list the configuration to compare."""
    return judge_evidence(CHECK, subject, CLIENT, _lines(subject), denied_topics(subject))


def _lines(subject: PostureSubject) -> Iterator[PostureLine]:
    partitions = subject.clients.writers.partitions
    for name in sorted(partitions):
        reason = _reason(subject, partitions[name])
        plain = [each for each in partitions[name].writers if each.producer_id is None]
        if plain and reason is not None:
            yield _line(partitions[name], plain[0], reason)


def _reason(subject: PostureSubject, partition: WrittenPartition) -> Why | None:
    """Return how bad a producer without an id is there, None where it is nothing."""
    topic = partition.name.topic
    position = subject.snapshot.partitions.index.position_of_topic.get(topic)
    carries = position is not None and bool(subject.carries_transactions[position])
    if carries or partition.has_transactions or len(partition.writers) > 1:
        return Why.NOT_IDEMPOTENT
    policy = None if position is None else subject.topic_config(position).get(CLEANUP_POLICY)
    return None if policy and policy.value == COMPACT else Why.ONLY_NOT_IDEMPOTENT


def _line(partition: WrittenPartition, writer: Writer, reason: Why) -> PostureLine:
    name = partition.name
    return named_line(
        CHECK,
        f"producers without an id on {name}",
        reason,
        ADVICE,
        words={
            "recorded": time_in_words(writer.last_record_us),
            "observed": time_in_words(writer.last_seen_us),
        },
        evidence={
            "topic": name.topic,
            "partition": name.partition,
            "first_offset": writer.first_offset,
            "last_offset": writer.last_offset,
            "first_record_time": iso_time_or_none(writer.first_record_us),
            "last_record_time": iso_time_or_none(writer.last_record_us),
            "first_observed_at": iso_time_or_none(writer.first_seen_us),
            "last_observed_at": iso_time_or_none(writer.last_seen_us),
            "samples": writer.samples,
        },
    )
