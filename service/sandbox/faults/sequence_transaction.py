"""A batch of a transaction is rejected as out of order, and then the transaction ends in one way or another.

By single requests each end can be made: the missing batches come and it is committed; its owner aborts
it, as applications of librdkafka have to; another instance takes its transactional id; its timeout
passes; or it stays open. librdkafka itself gives such a transaction up: its application aborts it, or
leaves it to the timeout.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from rules.errors import SandboxError
from rules.facts.episode_transactions import TransactionOutcome
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.faults.disk_batches import markers_on_disk
from service.sandbox.faults.fault_context import FaultContext, Verdict, make_context
from service.sandbox.faults.fault_run import SETTLE_SECONDS, Client, FaultRun
from service.sandbox.faults.rule_names import (
    DUPLICATES,
    GAP_REORDERING,
    NOTHING_LOST,
    SEQUENCE_BUG,
)
from service.sandbox.faults.sequence_context import (
    SequenceInjection,
    await_rejection,
    end_of,
    episode_of,
    only_producer,
    sequence_truth,
)
from service.sandbox.faults.sequence_truth import (
    Expected,
    RejectedTransactionTruth,
    SequenceTruth,
)
from service.sandbox.workloads.broker_proxy import CorruptingProxy
from service.sandbox.workloads.raw_cluster import RejectedError
from service.sandbox.workloads.raw_producer import RawProducer, after
from service.sandbox.workloads.stepwise_producer import (
    DELIVERY_MS,
    MOST_UNDER_WAY,
    StepwiseLibrdkafka,
)

OUTCOMES: Final = (
    TransactionOutcome.COMMITTED,
    TransactionOutcome.ABORTED,
    TransactionOutcome.FENCED,
    TransactionOutcome.TIMED_OUT,
    TransactionOutcome.OPEN,
)
OF_LIBRDKAFKA: Final = (TransactionOutcome.ABORTED, TransactionOutcome.TIMED_OUT)
ENDS: Final = {
    TransactionOutcome.COMMITTED: "it is over: the retries were taken, and the transaction is committed",
    TransactionOutcome.ABORTED: "it is over: the owner aborted the transaction",
    TransactionOutcome.FENCED: "it is over: a second instance took the transactional id",
    TransactionOutcome.TIMED_OUT: "it is over: the coordinator aborted the transaction",
    TransactionOutcome.OPEN: "by itself: the coordinator aborts the transaction after its timeout",
}


def prepare_in_transaction(run: FaultRun) -> SequenceInjection:
    """Let a producer write the first batch of a transaction."""
    outcome, client = run.options.outcome, run.options.client
    if client is Client.JAVA or outcome not in OUTCOMES:
        raise SandboxError(f"{run.fault} is not made by {client} with the outcome {outcome}")
    if client is Client.LIBRDKAFKA:
        return _prepare_live(run)
    context = make_context(run)
    owner = run.producer(protocol=run.protocol)
    owner.begin()
    owner.add(context.where)
    owner.sequenced().send(context.where, 0, run.options.batch)
    return partial(_inject, context, owner)


def _inject(context: FaultContext, owner: RawProducer) -> SequenceTruth:
    options, where, producer = context.run.options, context.where, owner.sequenced()
    producer_id, epoch, batch = owner.producer_id, owner.producer_epoch, options.batch
    early, late = after(batch, options.records), batch
    producer.expect_rejection(where, early, batch)
    is_committed = options.outcome is TransactionOutcome.COMMITTED
    if is_committed:
        for size in context.batches(options.records):
            producer.send(where, late, size)
            late = after(late, size)
        producer.send(where, early, batch)
    _end(context, owner)
    expected = Expected(
        sequence_class=SequenceClass.REORDERING,
        producer_epoch=epoch,
        rejected=(early,),
        current_sequence=batch - 1,
        is_healed=is_committed,
    )
    return _build_truth(context, producer_id, expected, owner.transactional_id)


def _end(context: FaultContext, owner: RawProducer) -> None:
    """End the transaction as the caller wants it, and wait until it holds nothing back."""
    run = context.run
    match run.options.outcome:
        case TransactionOutcome.OPEN:
            run.undo.callback(_abort, owner)
            return
        case TransactionOutcome.COMMITTED | TransactionOutcome.ABORTED as outcome:
            owner.end(commit=outcome is TransactionOutcome.COMMITTED)
        case TransactionOutcome.FENCED:
            run.producer(transactional_id=owner.transactional_id).begin()
    run.await_release(context.where, owner, 0)
    _await_marker(context)


def _abort(owner: RawProducer) -> None:
    """End it as its owner would, unless its coordinator has."""
    with suppress(RejectedError):
        owner.end(commit=False)


def _await_marker(context: FaultContext) -> None:
    """Wait until nothing of the transaction is open on the partition."""

    def is_released() -> bool:
        [state] = context.observe()
        ends = context.run.cluster.ends(context.where)
        return ends.last_stable_offset == state.high_watermark

    await_condition(is_released, f"{context.where} is still held", seconds=SETTLE_SECONDS)


def _prepare_live(run: FaultRun) -> SequenceInjection:
    if run.options.outcome not in OF_LIBRDKAFKA:
        raise SandboxError(f"an application of librdkafka never sees {run.options.outcome} here")
    context = make_context(run)
    ports = {node.id: node.port for node in run.sandbox.state.brokers}
    proxy = run.undo.enter_context(CorruptingProxy(ports))
    batch = min(run.options.batch, MOST_UNDER_WAY // 2)
    client = StepwiseLibrdkafka(
        proxy.bootstrap_servers,
        context.topic,
        batch=batch,
        transactional_id=run.new_name,
        delivery_ms=DELIVERY_MS,
        transaction_ms=round(run.timeout.total_seconds() * 1000),
    )
    run.undo.callback(client.close)
    end = end_of(context)
    client.hand_over(batch)
    await_condition(
        lambda: end_of(context) >= end + batch, f"{context.topic} does not take the first records"
    )
    return partial(_inject_live, context, proxy, client)


def _inject_live(
    context: FaultContext, proxy: CorruptingProxy, client: StepwiseLibrdkafka
) -> SequenceTruth:
    options = context.run.options
    producer_id, epoch = only_producer(context)
    proxy.spoil_next()
    client.hand_over(options.records)
    await_rejection(context, producer_id)
    if not client.has_given_up():
        raise SandboxError(f"{context.run.fault} came otherwise: librdkafka gave up nothing")
    if options.outcome is TransactionOutcome.ABORTED:
        client.abort()
    _await_marker(context)
    expected = Expected(
        sequence_class=SequenceClass.REORDERING,
        client=Client.LIBRDKAFKA,
        producer_epoch=epoch,
        is_healed=False,
    )
    truth = _build_truth(context, producer_id, expected, context.run.new_name)
    return replace(truth, application_log=client.logged())


def _build_truth(
    context: FaultContext, producer_id: int, expected: Expected, transactional_id: str
) -> SequenceTruth:
    """Put the truth together; the leader's files have to have the marker that fits the outcome."""
    run, outcome = context.run, context.run.options.outcome
    leader = run.cluster.placed(context.where).leader
    markers = markers_on_disk(run.sandbox, leader, context.where).get(producer_id, [])
    wanted = {
        TransactionOutcome.COMMITTED: [True],
        TransactionOutcome.OPEN: [],
    }.get(outcome, [False])
    if [marker.is_commit for marker in markers] != wanted:
        raise SandboxError(f"{run.fault} came otherwise: {outcome} has the markers {markers}")
    verdict = Verdict(
        rule=GAP_REORDERING,
        silent=(*NOTHING_LOST, DUPLICATES, SEQUENCE_BUG),
        ends=ENDS[outcome],
    )
    return sequence_truth(
        context,
        verdict,
        [episode_of(context, producer_id, expected)],
        application_notified=outcome is not TransactionOutcome.COMMITTED,
        transaction=RejectedTransactionTruth(
            transactional_id=transactional_id,
            outcome=outcome,
            producer_epoch=expected.producer_epoch,
            marker_offset=markers[0].offset if markers else None,
        ),
    )
