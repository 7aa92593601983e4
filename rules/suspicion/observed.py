"""Adds the answers of leaders to a suspicion: what they remember of producers, and what their logs hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rules.facts.batches import BatchesOf
from rules.facts.identity import TopicPartition
from rules.facts.suspicions import PartitionState, SuspectedPartition, Suspicion
from rules.suspicion.leaders import state_of
from rules.suspicion.traces import is_continued, list_breaks
from rules.view import View


def with_answers(view: View, suspicion: Suspicion) -> Suspicion:
    """Return a suspicion whose partitions have what this round shows of them."""
    batches: dict[TopicPartition, list[BatchesOf]] = {}
    for of_producer in view.snapshot.batches:
        batches.setdefault(of_producer.name, []).append(of_producer)
    partitions = tuple(_observe(view, partition, batches) for partition in suspicion.partitions)
    proven = sum(
        before.is_open and not after.is_open
        for before, after in zip(suspicion.partitions, partitions, strict=True)
    )
    return replace(
        suspicion, partitions=partitions, open_count=max(suspicion.open_count - proven, 0)
    )


def _observe(
    view: View, partition: SuspectedPartition, batches: Mapping[TopicPartition, list[BatchesOf]]
) -> SuspectedPartition:
    row = view.snapshot.partitions.index.row(partition.name.topic, partition.name.partition)
    if row is None or view.snapshot.partitions.topic_id(row) != partition.topic_id:
        return partition
    described = view.snapshot.producers.newest.get(row)
    if described is not None:
        partition = replace(partition, producers=described.count)
    if partition.is_open:
        now = state_of(view, row)
        partition = replace(
            partition,
            state=now.state,
            leader_epoch=now.leader_epoch,
            changed_us=partition.changed_us or now.changed_us,
            change_epoch=now.change_epoch,
        )
    scanned = batches.get(partition.name, [])
    return _with_batches(view, partition, scanned, row) if scanned else partition


def _with_batches(
    view: View, partition: SuspectedPartition, scanned: list[BatchesOf], row: int
) -> SuspectedPartition:
    epoch = partition.change_epoch
    breaks = tuple(each for batches in scanned for each in list_breaks(batches, epoch))
    partition = replace(partition, breaks=breaks)
    is_whole = partition.producers is not None and len(scanned) == partition.producers
    end = view.snapshot.offsets.high_watermark[row]
    is_whole = is_whole and all(
        end is not None and batches.scanned_to >= end for batches in scanned
    )
    # With transactions v2 a leader rejects a producer that it does not know at all, whose records
    # may all be lost: then those that it knows are not all.
    is_whole &= not view.snapshot.transactions.was_ever_used
    if partition.state is not PartitionState.CHANGED or epoch is None or not is_whole:
        return partition
    if all(is_continued(batches, epoch) or _is_new(batches, epoch) for batches in scanned):
        return replace(partition, state=PartitionState.CONTINUED)
    return partition


def _is_new(batches: BatchesOf, change_epoch: int) -> bool:
    """Whether a producer's first batch came after a change: nothing of it was accepted before."""
    if not batches.batches:
        return False
    first = batches.batches[0]
    is_first = (first.producer_epoch, first.base_sequence) == (0, 0)
    return is_first and first.leader_epoch >= change_epoch
