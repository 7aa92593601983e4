"""Faults about transactions: open, overdue, hanging, fenced, or decided and stuck."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Final

from collectors.state_topic import partition_of
from rules.errors import SandboxError
from rules.facts.fencing import FencingClass
from rules.facts.identity import CONSUMER_OFFSETS, TRANSACTION_STATE, BrokerId, TopicPartition
from rules.facts.transaction_log import Cut
from rules.facts.transactions import TransactionState
from rules.transactions.classes import TransactionClass
from service.runtime.clock import monotonic, wait_until
from service.sandbox.cluster.readiness import await_condition, listed_brokers
from service.sandbox.cluster.tools import run_quietly
from service.sandbox.faults.fault_run import (
    RECORDS,
    RECORDS_BEFORE,
    SETTLE_SECONDS,
    FaultRun,
    changed_setting,
)
from service.sandbox.faults.replicas import choose_pair
from service.sandbox.faults.truth import Truth
from service.sandbox.workloads.raw_cluster import RejectedError, patiently
from service.sandbox.workloads.raw_producer import RawProducer, append_plain

HELD: Final = ("last_stable_offset_stuck", "read_committed_consumers_blocked")
LIMIT: Final = "max.message.bytes"
LIMIT_BYTES: Final = 400  # the decision of the workload's pipeline takes 190
LONG_NAME: Final = 300  # letters; with what a batch adds (120 bytes and more), above the limit
FENCED: Final = frozenset({"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})
VERIFICATION: Final = "transaction.partition.verification.enable"
# Errors of a leader that still verifies with the coordinator, which does not know the transaction.
NOT_YET: Final = frozenset(
    {"TRANSACTION_ABORTABLE", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"}
)
TOOL: Final = "kafka-transactions.sh"


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
    """Keep the coordinator from aborting a transaction whose timeout is over.

    On Kafka 4.1 a coordinator searches for such transactions in a fixed interval
    (`transaction.abort.timed.out.transaction.cleanup.interval.ms`, not to be changed at run time) and
    writes its decision to `__transaction_state` before it acts. A batch above the topic's
    `max.message.bytes` is rejected there; the transaction then stays open, and the coordinator tries
    again at its next search. The limit is set so that it stops a transactional id of unusual length
    and no other one.
    """
    where = run.prepare_topic()
    producer = run.producer(transactional_id=run.new_name.ljust(LONG_NAME, "x"))
    start = begin_held(run, producer, where)
    began = monotonic()
    run.admin.set_topic_config(TRANSACTION_STATE, {LIMIT: str(LIMIT_BYTES)})
    run.undo.callback(run.await_release, where, producer, start)
    run.undo.callback(run.admin.set_topic_config, TRANSACTION_STATE, {LIMIT: None})
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
        ends=f"when {LIMIT} of {TRANSACTION_STATE} is back: the coordinator then aborts it",
        undo=run.command("config", "topic", TRANSACTION_STATE, f"{LIMIT}="),
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
    fencing_class: FencingClass | None = None,
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
        fencing_class=fencing_class,
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


def make_second_instance(run: FaultRun) -> Truth:
    """Begin a second producer of the same transactional id in the first one's transaction."""
    where = run.prepare_topic()
    first, second = run.producer(), run.producer()
    start = begin_open(run, first, where)
    second.begin()
    run.await_release(where, first, start)
    return _truth(run, first, start, cut=Cut.SECOND_INSTANCE, new_epoch=second.producer_epoch)


def make_timeout_fence(run: FaultRun) -> Truth:
    """Let a living owner exceed its timeout, and then go on as if nothing had happened."""
    where = run.prepare_topic()
    owner = run.producer()
    start = begin_open(run, owner, where)
    run.await_release(where, owner, start)
    producers = {producer.producer_id: producer for producer in run.cluster.producers(where)}
    epoch = producers[owner.producer_id].producer_epoch  # of the abort marker
    return _truth(run, owner, start, cut=Cut.TIMEOUT, new_epoch=epoch)


def _truth(run: FaultRun, owner: RawProducer, start: int, *, cut: Cut, new_epoch: int) -> Truth:
    require_fenced(run, owner)
    return transaction_truth(
        run,
        owner,
        start,
        rule="producer_fenced",
        ends="it is over: the transaction is aborted, and its owner was rejected",
        cut=cut,
        fencing_epoch=new_epoch,
    )


def require_fenced(run: FaultRun, owner: RawProducer) -> None:
    """Let the old owner try all it can; a broker that takes anything of it is no fault at all."""
    attempts: dict[str, Callable[[], object]] = {
        "write": lambda: owner.produce(run.where, 1),
        "commit": lambda: owner.end(commit=True),
    }
    for what, attempt in attempts.items():
        try:
            attempt()
        except RejectedError as rejected:
            if rejected.error in FENCED:
                continue
            raise
        raise SandboxError(f"{owner.transactional_id} was to be fenced, and could {what}")


def make_hanging(run: FaultRun) -> Truth:
    """Open a transaction on the partition that its coordinator does not know of, and will not end.

    Brokers since 3.6 ask the coordinator before they open a transaction on a partition (KIP-890).
    With that check off on the leader, records written outside the producer's transaction open one
    there, as a late request did on older brokers.
    """
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
    return _hanging_truth(run, producer, start, repair)


def _hanging_truth(
    run: FaultRun, producer: RawProducer, start: int, repair: Sequence[str]
) -> Truth:
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
    count = len(run.cluster.topic(CONSUMER_OFFSETS))
    if not count:
        raise SandboxError(
            f"there is no {CONSUMER_OFFSETS} yet: let a group commit something first"
        )
    run.options = replace(
        run.options, topic=CONSUMER_OFFSETS, partition=partition_of(run.new_name, count)
    )
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


def make_stuck_marker(run: FaultRun) -> Truth:
    """Commit a transaction while the partition's follower is paused: it is decided and cannot end.

    Only one of the partition's two replicas is in sync, and it may not write alone
    (`min.insync.replicas=2`). The coordinator, which is a third broker, has written its decision and
    sends the marker again and again: hundreds of log lines per second on both brokers.
    """
    producer = run.producer()
    pair = choose_pair(run)
    leader, follower = pair.leader, pair.follower
    where = _make_topic(run, leader, follower)
    start = begin_held(run, producer, where)
    run.undo.callback(run.await_release, where, producer, start)
    run.sandbox.pause(follower)
    run.undo.callback(run.sandbox.resume, follower)
    settle = partial(await_condition, seconds=SETTLE_SECONDS)
    settle(
        lambda: run.cluster.placed(where).isr == {leader},
        f"broker {follower} is still in sync on {where}",
    )
    settle(  # what it led is led by others from here on
        lambda: follower not in listed_brokers(run.sandbox.broker_address(leader)),
        f"broker {follower} is still registered",
    )
    _decide(producer)
    decided = TransactionState.PREPARE_COMMIT
    listed = partial(run.cluster.listed, producer.transactional_id)
    settle(  # a coordinator that has just been elected still loads
        lambda: getattr(patiently(listed), "state", None) == decided,
        f"{producer.transactional_id} did not become {decided}",
    )
    return transaction_truth(
        run,
        producer,
        start,
        hold_class=TransactionClass.PREPARE_COMMIT,
        rule="transaction_marker_stuck",
        also=(*HELD, "partition_under_min_isr"),
        ends=f"when broker {follower} goes on, and is in sync again",
        undo=run.command("resume", str(follower)),
    )


def _decide(producer: RawProducer) -> None:
    """Commit, unless the coordinator has the decision already.

    On Kafka 3.3.2 an ISR that shrinks makes the coordinator load its log again. A decision that it
    writes meanwhile counts, is answered with NOT_COORDINATOR, and is rejected when it is sent again.
    """
    try:
        producer.end(commit=True)
    except RejectedError as rejected:
        if rejected.error != "CONCURRENT_TRANSACTIONS":
            raise


def _make_topic(run: FaultRun, leader: BrokerId, follower: BrokerId) -> TopicPartition:
    where = run.where
    if run.cluster.topic(where.topic):
        raise SandboxError(
            f"topic {where.topic} is there already: stuck-marker makes one with two replicas"
        )
    if run.options.topic is None:
        run.undo.callback(run.remove_topic, where.topic)
    assignment = [[leader, follower]] * (where.partition + 1)
    run.admin.create_topic(where.topic, assignment=assignment, configs={"min.insync.replicas": "2"})
    append_plain(run.cluster, where, RECORDS_BEFORE)
    return where
