"""Suspicions, each fact declared once for the API and the command line: rejections without a line."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.facts.suspicions import (
    PartitionState,
    SuspectedPartition,
    Suspicion,
    SuspicionOutcome,
    SuspicionSource,
)
from rules.suspicion import words
from service.views.model import FindingState, Model, Timestamp


class SuspectedPartitionRow(Model):
    """A partition that may have rejected the batches."""

    topic: str
    partition: int
    state: PartitionState
    """What is known of its leaders; lost, changed, clean_not_proven and not_observed prove nothing"""
    leader_epoch: int | None
    producers: Annotated[
        int | None, Field(description="That its leader remembers; null: not known")
    ]
    breaks: list[str]
    """Where a producer's sequence does not go on in the log, in sentences"""


class ClientRiseRow(Model):
    """A client of which records failed, or were sent again, at that time."""

    client_id: str
    address: str
    topic: Annotated[str | None, Field(description="null: of all its topics")]
    errors: int
    retries: int


class SuspicionRow(Model):
    """Rejected batches that only a counter shows, by broker and time."""

    id: str
    source: Annotated[SuspicionSource, Field(description="What counted")]
    error: Annotated[
        str, Field(description="Kafka's name; of a client record-error or record-retry")
    ]
    address: Annotated[str, Field(description="Of the process that counted; of clients the topic")]
    brokers: Annotated[
        list[int], Field(description="One of these; empty: the address is no broker's")
    ]
    topic: Annotated[str | None, Field(description="null: it may be any")]
    since: Annotated[Timestamp, Field(description="Counted after this")]
    until: Annotated[Timestamp, Field(description="And before this")]
    count: int
    outcome: Annotated[SuspicionOutcome, Field(description="What became of it")]
    state: FindingState
    """ended: nothing was counted for an hour, or for five minutes where nothing can be missing"""
    ended_at: Timestamp | None
    is_investigating: bool
    """The next round queries the leaders of its partitions"""
    partition_count: Annotated[int, Field(description="Partitions that the broker led then")]
    open_partition_count: Annotated[
        int, Field(description="Of those, in which records may be missing")
    ]
    partitions: list[SuspectedPartitionRow]
    """The worst first, 64 at most"""
    clients: list[ClientRiseRow]
    """Producers whose own counters rose at that time"""
    hints: dict[str, int]
    """Other errors of producers that the same process counted then"""
    explanation: Annotated[str, Field(description="What is known, in words")]
    needed_evidence: str | None
    """Evidence that would settle it; null: it is settled"""
    check: Annotated[str, Field(description="What to do")]


def suspicion_row(suspicion: Suspicion) -> SuspicionRow:
    """Return a suspicion of a round."""
    return SuspicionRow.of(
        suspicion,
        since=suspicion.since_us,
        until=suspicion.until_us,
        brokers=list(suspicion.brokers),
        state=FindingState.OPEN if suspicion.ended_us is None else FindingState.ENDED,
        ended_at=suspicion.ended_us,
        is_investigating=suspicion.is_querying,
        open_partition_count=suspicion.open_count,
        partitions=[_partition(partition) for partition in suspicion.partitions],
        clients=[ClientRiseRow.of(client) for client in suspicion.clients],
        hints=dict(suspicion.hints),
        explanation=words.explain(suspicion),
        needed_evidence=words.needed_evidence(suspicion),
        check=words.check(suspicion),
    )


def _partition(partition: SuspectedPartition) -> SuspectedPartitionRow:
    return SuspectedPartitionRow.of(
        partition,
        topic=partition.name.topic,
        partition=partition.name.partition,
        breaks=[words.describe_break(each) for each in partition.breaks],
    )
