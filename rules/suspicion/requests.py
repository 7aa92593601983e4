"""What a suspicion needs to know of its partitions' leaders; nothing where nothing is suspected."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.suspicions import SuspectedPartition, Suspicion
from rules.facts.times import EPOCH
from rules.question import BatchesQuestion, BatchRequest, ProducersQuestion, Question
from rules.view import View

MAX_QUERIED: Final = 16  # partitions of a suspicion in one round
MAX_PRODUCERS: Final = 4  # of a partition, whose batches are read
MAX_DESCRIBED: Final = 50  # producers of a partition, the latest
# Records are created before they are appended, and clocks differ.
READ_FROM: Final = timedelta(seconds=60)


def suspicion_questions(view: View) -> tuple[Question, ...]:
    """Return the questions of the suspicions that query their leaders; none on a healthy cluster."""
    querying = [each for each in view.memory.suspicions.open if each.is_querying]
    chosen = {
        row: (suspicion, partition)
        for suspicion in querying
        for partition in suspicion.partitions[:MAX_QUERIED]
        if (row := _row(view, partition)) is not None
    }
    if not chosen:
        return ()
    rows = np.array(sorted(chosen), np.int64)
    states = ProducersQuestion(view.snapshot.partitions, rows, newest_producers=MAX_DESCRIBED)
    requests = tuple(
        request
        for row, (suspicion, partition) in chosen.items()
        for request in _list_requests(view, row, suspicion, partition)
    )
    return (states, BatchesQuestion(requests)) if requests else (states,)


def _row(view: View, partition: SuspectedPartition) -> int | None:
    partitions = view.snapshot.partitions
    row = partitions.index.row(partition.name.topic, partition.name.partition)
    return None if row is None or partitions.topic_id(row) != partition.topic_id else row


def _list_requests(
    view: View, row: int, suspicion: Suspicion, partition: SuspectedPartition
) -> Iterator[BatchRequest]:
    """Request the batches of the latest producers, from before the change or the rejections on."""
    described = view.snapshot.producers.newest.get(row)
    if described is None:
        return
    from_us = partition.changed_us or suspicion.since_us
    since = EPOCH + timedelta(microseconds=from_us) - READ_FROM
    for producer_id in sorted(described.ids[:MAX_PRODUCERS]):
        yield BatchRequest(
            name=partition.name,
            producer_id=producer_id,
            offset=None,
            sequence=None,
            last_record_at=since,
        )
