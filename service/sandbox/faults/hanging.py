"""A transaction that hangs: open on a partition, and no coordinator will ever end it.

Brokers since 3.6 ask the coordinator before they open a transaction on a partition (KIP-890).
With that check off on the leader, records written outside the producer's transaction open one
there, as a late request did on older brokers.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Final

from collectors.state_topic import partition_of
from rules.errors import SandboxError
from rules.facts.identity import TopicPartition
from rules.transactions.classes import TransactionClass
from service.runtime.clock import wait_until
from service.sandbox.cluster.tools import run_quietly
from service.sandbox.faults.broker_settings import changed_setting
from service.sandbox.faults.fault_run import RECORDS, SETTLE_SECONDS, FaultRun
from service.sandbox.faults.open_transaction import HELD, transaction_truth
from service.sandbox.faults.truth import Truth
from service.sandbox.workloads.raw_cluster import RejectedError
from service.sandbox.workloads.raw_producer import RawProducer

OFFSETS: Final = "__consumer_offsets"
VERIFICATION: Final = "transaction.partition.verification.enable"
# Errors of a leader that still verifies with the coordinator, which does not know the transaction.
NOT_YET: Final = frozenset(
    {"TRANSACTION_ABORTABLE", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"}
)
TOOL: Final = "kafka-transactions.sh"


def make_hanging(run: FaultRun) -> Truth:
    """Open a transaction on the partition that its coordinator does not know of."""
    where = _offsets_partition(run) if run.options.offsets else run.prepare_topic()
    producer = run.producer()
    if run.options.unlisted:
        producer.begin_unknown()
    else:
        producer.begin()
    leader = run.cluster.placed(where).leader
    asks = run.sandbox.state.release.verifies_transactions
    with changed_setting(run, leader, VERIFICATION, "false") if asks else nullcontext():
        start = _write_outside(run, producer, where)
    place = ("--topic", where.topic, "--partition", str(where.partition))
    repair = (*place, "--start-offset", str(start))
    run.undo.callback(_repair, run, producer, where, repair)
    run.block_group(where, start)
    truth = transaction_truth(
        run,
        producer,
        start,
        hold_class=TransactionClass.HANGING,
        rule="transaction_hanging",
        also=HELD,
        ends="never by itself",
        undo=run.command("tool", TOOL, "abort", *repair),
    )
    if not run.options.unlisted:
        return truth
    return replace(  # the producer's id is recorded nowhere
        truth,
        transactional_id=None,
        coordinator=None,
        coordinator_epoch=None,
        state=None,
        timeout=None,
    )


def _offsets_partition(run: FaultRun) -> TopicPartition:
    """Return where the offsets of the fault's own group are kept; that is what suffers then."""
    count = len(run.cluster.topic(OFFSETS))
    if not count:
        raise SandboxError(f"there is no {OFFSETS} yet: let a group commit something first")
    run.options = replace(run.options, topic=OFFSETS, partition=partition_of(run.new_name, count))
    return run.where


def _write_outside(run: FaultRun, producer: RawProducer, where: TopicPartition) -> int:
    """Write as soon as the leader no longer verifies; return the first offset."""

    def append() -> int:
        if not run.options.offsets:
            return producer.produce(where, RECORDS)
        producer.commit_offsets(run.new_name, where, 0)
        [opened] = [
            candidate
            for candidate in run.cluster.producers(where)
            if candidate.producer_id == producer.producer_id
        ]
        if opened.start_offset is None:
            raise SandboxError(f"nothing is open on {where}")
        return opened.start_offset

    offsets: list[int] = []

    def is_taken() -> bool:
        try:
            offsets.append(append())
        except RejectedError as rejected:
            if rejected.error not in NOT_YET:
                raise
        return bool(offsets)

    if not wait_until(is_taken, timeout_seconds=SETTLE_SECONDS):
        raise SandboxError(f"the leader of {where} still asks coordinators before it appends")
    return offsets[0]


def _repair(
    run: FaultRun, producer: RawProducer, where: TopicPartition, repair: tuple[str, ...]
) -> None:
    if run.is_open(where, producer.producer_id):  # unless somebody did it already
        run_quietly(run.sandbox, TOOL, ["abort", *repair])
