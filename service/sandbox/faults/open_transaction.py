"""Transactions that stay open: within their timeout, and beyond it.

How one stays open beyond it, on Kafka 4.1: a coordinator searches for such transactions in a fixed
interval (`transaction.abort.timed.out.transaction.cleanup.interval.ms`, not to be changed at run
time) and writes its decision to `__transaction_state` before it acts. A batch above the topic's
`max.message.bytes` is rejected there; the transaction then stays open, and the coordinator tries
again at its next search. The limit is set so that it stops a transactional id of unusual length and
no other one.
"""

from __future__ import annotations

from typing import Final

from rules.errors import SandboxError
from rules.facts.identity import TopicPartition
from rules.facts.transaction_log import Cut
from rules.facts.transactions import TransactionState
from rules.transactions.classes import TransactionClass
from service.runtime.clock import monotonic, wait_until
from service.sandbox.faults.fault_run import RECORDS, FaultRun
from service.sandbox.faults.truth import Truth
from service.sandbox.workloads.raw_cluster import TRANSACTION_LOG, RejectedError
from service.sandbox.workloads.raw_producer import RawProducer

HELD: Final = ("last_stable_offset_stuck", "read_committed_consumers_blocked")
LIMIT: Final = "max.message.bytes"
LIMIT_BYTES: Final = 400  # the decision of the workload's pipeline takes 190
LONG_NAME: Final = 300  # letters; with what a batch adds (120 bytes and more), above the limit


def begin_open(run: FaultRun, producer: RawProducer, where: TopicPartition) -> int:
    """Begin a transaction on the partition; return where its records begin."""
    producer.begin()
    run.undo.callback(_abort, run, producer, where)
    producer.add(where)
    return producer.produce(where, RECORDS)


def begin_held(run: FaultRun, producer: RawProducer, where: TopicPartition) -> int:
    """Begin a transaction that will last, and a group that waits for it."""
    start = begin_open(run, producer, where)
    run.block_group(where, start)
    return start


def make_open(run: FaultRun) -> Truth:
    """Leave a transaction open, well within its timeout."""
    where = run.prepare_topic()
    producer = run.producer()
    start = begin_held(run, producer, where)
    seconds = run.timeout.total_seconds()
    return transaction_truth(
        run,
        producer,
        start,
        hold_class=TransactionClass.OPEN,
        rule="last_stable_offset_stuck",  # in time; a group that waits is no breach meanwhile
        ends=f"by itself: the coordinator aborts it {seconds:g} s after it began, or soon after",
        undo=_terminate_command(run, producer, where, start),
    )


def make_overdue(run: FaultRun) -> Truth:
    """Keep the coordinator from aborting a transaction whose timeout is over."""
    where = run.prepare_topic()
    producer = run.producer(transactional_id=run.new_name.ljust(LONG_NAME, "x"))
    start = begin_held(run, producer, where)
    began = monotonic()
    run.admin.set_topic_config(TRANSACTION_LOG, {LIMIT: str(LIMIT_BYTES)})
    run.undo.callback(run.await_release, where, producer, start)
    run.undo.callback(run.admin.set_topic_config, TRANSACTION_LOG, {LIMIT: None})
    over = began + run.timeout.total_seconds()
    wait_until(lambda: monotonic() > over, timeout_seconds=over - monotonic() + 1)
    if not run.is_open(where, producer.producer_id):
        raise SandboxError("the coordinator aborted the transaction too early: give it more time")
    return transaction_truth(
        run,
        producer,
        start,
        hold_class=TransactionClass.OVERDUE,
        rule="transaction_overdue",
        also=HELD,
        ends=f"when {LIMIT} of {TRANSACTION_LOG} is back: the coordinator then aborts it",
        undo=run.command("config", "topic", TRANSACTION_LOG, f"{LIMIT}="),
    )


def transaction_truth(  # noqa: PLR0913 - what a monitor should find, and how it ends
    run: FaultRun,
    producer: RawProducer,
    start: int,
    *,
    rule: str,
    ends: str,
    also: tuple[str, ...] = (),
    hold_class: TransactionClass | None = None,
    undo: str | None = None,
    cut: Cut | None = None,
    fencing_epoch: int | None = None,
) -> Truth:
    """Return the truth of a transaction of a producer that began at `start`."""
    where = run.where
    listed = run.cluster.listed(producer.transactional_id)
    seen = run.cluster.ends(where)
    return Truth(
        fault=run.fault,
        where=where,
        rule=rule,
        also=also,
        hold_class=hold_class,
        transactional_id=producer.transactional_id,
        coordinator=run.cluster.coordinator(producer.transactional_id),
        coordinator_epoch=run.cluster.coordinator_epoch(producer.transactional_id),
        state=None if listed is None else TransactionState(listed.state),
        timeout=producer.timeout,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        cut=cut,
        fencing_epoch=fencing_epoch,
        start_offset=start,
        last_stable_offset=seen.last_stable_offset,
        high_watermark=seen.high_watermark,
        blocked_groups=tuple(run.groups),
        ends=ends,
        undo=() if undo is None else (undo,),
    )


def _terminate_command(
    run: FaultRun, producer: RawProducer, where: TopicPartition, start: int
) -> str:
    """Return what aborts an open transaction: by its name, or on its partition in older tools."""
    by_name = ("forceTerminateTransaction", "--transactionalId", producer.transactional_id)
    place = ("--topic", where.topic, "--partition", str(where.partition))
    on_partition = ("abort", *place, "--start-offset", str(start))
    words = by_name if run.sandbox.state.release.terminates_by_name else on_partition
    return run.command("tool", "kafka-transactions.sh", *words)


def _abort(run: FaultRun, producer: RawProducer, where: TopicPartition) -> None:
    """End it as its owner would, unless somebody else did."""
    if run.is_open(where, producer.producer_id):
        try:
            producer.end(commit=False)
        except RejectedError:  # decided meanwhile: only the markers are missing
            return
