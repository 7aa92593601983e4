"""The largest batch of a topic does not fit what replicates and writes it.

Judges:
    The effective `max.message.bytes` of each topic against the brokers' `replica.fetch.max.bytes`, and against the
    batches of producers.

What can go wrong:
    A follower fetches at least one batch, however large (KIP-74), so that nothing stalls: but where a batch is
    larger than `replica.fetch.max.bytes` it fetches one at a time, falls behind under load and leaves the
    ISR. Below `batch.size` of producers (16,384 by default) a Java producer has to split batches that it has
    already numbered, and librdkafka fails them.

How to set it:
    `replica.fetch.max.bytes` of all brokers at least as high as the largest `max.message.bytes`; it is read at
    the start. Clients have limits of their own: `max.request.size` (Java) or `message.max.bytes` (librdkafka) of
    producers; `fetch.max.bytes` and `max.partition.fetch.bytes` of consumers, which read at least one batch as
    well.

What it does not say:
    Kafka's own defaults differ by 12 bytes, the header of a batch, and are right. What clients have set
    cannot be seen.
"""

from __future__ import annotations

from typing import Final

from rules.facts.config_keys import FETCH_MAX_BYTES, MAX_MESSAGE_BYTES
from rules.facts.configs import ConfigEntry
from rules.posture import setting_values
from rules.posture.commands import IN_FILE, OF_TOPIC
from rules.posture.judging import TopicCheck, wrong
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureReason,
    PostureScope,
)
from rules.posture.subject import PostureSubject
from rules.verdict import Severity

BATCH_HEADER: Final = 12  # bytes: base offset and length


class Why(PostureReason):
    """Reasons of this check."""

    FITS = "fits"
    ABOVE_REPLICA_FETCH = "above_replica_fetch"
    BELOW_PRODUCER_BATCH = "below_producer_batch"


CHECK: Final = PostureCheck(
    check_id="topic_message_size",
    scope=PostureScope.TOPIC,
    setting=MAX_MESSAGE_BYTES,
    summary="The largest batch fits into a fetch of a follower, and a producer's batch into the limit.",
    severity=Severity.INFO,
)

ADVICE: Final[dict[PostureReason, Advice]] = {
    Why.ABOVE_REPLICA_FETCH: Advice(
        consequence="Followers fetch at most {fetch_bytes} bytes (replica.fetch.max.bytes) of a partition: larger "
        "batches are replicated one at a time, and replicas may leave the ISR.",
        fix=f"{IN_FILE}replica.fetch.max.bytes={{value}}",
    ),
    Why.BELOW_PRODUCER_BATCH: Advice(
        consequence=f"Full batches of a Java producer (batch.size {setting_values.BATCH_SIZE}) are rejected and have to be split; "
        "librdkafka fails them with MSG_SIZE_TOO_LARGE.",
        fix=f"{OF_TOPIC}max.message.bytes={setting_values.MAX_MESSAGE_BYTES}",
    ),
}


def judge(subject: PostureSubject) -> PostureJudgement:
    """Judge every topic."""
    limit = fewest_fetch_bytes(subject)
    check = TopicCheck(
        check=CHECK,
        subject=subject,
        positions=subject.topics,
        advice=ADVICE,
        words=lambda _: {"fetch_bytes": limit},
    )
    largest = check.values(MAX_MESSAGE_BYTES)
    cases = check.unseen_cases(largest.valid)
    if limit is not None:
        cases.append(wrong(largest.values > limit + BATCH_HEADER, Why.ABOVE_REPLICA_FETCH))
    cases.append(wrong(largest.values < setting_values.BATCH_SIZE, Why.BELOW_PRODUCER_BATCH))
    return check.judge(cases, Why.FITS)


def fewest_fetch_bytes(subject: PostureSubject) -> int | None:
    """Return the lowest `replica.fetch.max.bytes` that is known of the brokers."""
    values = subject.broker_values(FETCH_MAX_BYTES).values()
    sizes = [entry.number for entry in values if isinstance(entry, ConfigEntry)]
    return min((size for size in sizes if size is not None), default=None)
