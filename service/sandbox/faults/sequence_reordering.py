"""Batches that arrive in another order than they were sent: rejected at first, and taken later.

By single requests each form of the broker's rejection can be made. A client library only sends in
order; there a request is spoiled on its way, so that those behind it come too early.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from rules.facts.sequence_verdicts import SequenceClass
from service.runtime.clock import pause
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.faults.fault_context import FaultContext, Verdict, make_context
from service.sandbox.faults.fault_run import Client, FaultRun, new_mark
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
    open_client,
    sequence_truth,
    write_all,
)
from service.sandbox.faults.sequence_truth import Expected, SequenceTruth
from service.sandbox.workloads.broker_proxy import CorruptingProxy
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import (
    Protocol,
    SequencedProducer,
    TakenError,
    after,
    new_producer,
)
from service.sandbox.workloads.stepwise_producer import (
    MOST_UNDER_WAY,
    StepwiseLibrdkafka,
    StepwiseProducer,
)

# Until a request waits at the leader; the coordinator's session lasts 4.
ARRIVAL_SECONDS: Final = 0.3
TRIES: Final = 5
RULES: Final = Verdict(
    rule=GAP_REORDERING,
    silent=(*NOTHING_LOST, DUPLICATES, SEQUENCE_BUG),
    ends="it is over: the retries were taken",
)


def prepare_reordering(run: FaultRun) -> SequenceInjection:
    """Let a producer write its first batch, as far as the form leaves it one."""
    options = run.options
    if options.client is not Client.RAW:
        return _prepare_live(run)
    context = make_context(run)
    if options.form is SequenceForm.EXPECTED_ZERO:
        return partial(_inject_transaction, context)
    if options.form is SequenceForm.EARLIEST_SEEN:
        return partial(_overtake, context)
    producer = new_producer(run.cluster, run.new_name)
    producer.send(context.where, 0, options.batch)
    return partial(_inject, context, producer)


def _inject(context: FaultContext, producer: SequencedProducer) -> SequenceTruth:
    """Swap batches within an epoch, or at the beginning of a new one."""
    form, batch = context.run.options.form, context.run.options.batch
    if form is SequenceForm.NEW_EPOCH:
        producer.producer_epoch += 1
    return _build_truth(context, producer, batch if form is SequenceForm.OUT_OF_ORDER else 0)


def _inject_transaction(context: FaultContext) -> SequenceTruth:
    """Swap the first batches of a transaction: its leader knows nothing of the producer yet."""
    owner = context.run.producer(protocol=Protocol.V2)
    owner.begin()
    truth = _build_truth(context, owner.sequenced(), 0)
    owner.end(commit=True)
    context.run.await_release(context.where, owner, truth.episodes[0].offset)
    return truth


def _build_truth(context: FaultContext, producer: SequencedProducer, first: int) -> SequenceTruth:
    """Send a batch before the records that belong in front of it, and again behind them."""
    where, options = context.where, context.run.options
    early, late, form = after(first, options.records), first, options.form
    producer.expect_rejection(where, early, options.batch)
    for size in context.batches(options.records):
        producer.send(where, late, size)
        late = after(late, size)
    producer.send(where, early, options.batch)
    expected = Expected(
        sequence_class=SequenceClass.REORDERING,
        producer_epoch=producer.producer_epoch,
        form=form,
        rejected=(early,),
        current_sequence=first - 1 if form is SequenceForm.OUT_OF_ORDER else None,
        is_healed=True,
    )
    episode = episode_of(context, producer.producer_id, expected)
    return sequence_truth(context, RULES, [episode])


def _overtake(context: FaultContext) -> SequenceTruth:
    """Let a batch overtake another one; on a topic of its own each time.

    Which of the two a busy leader appends first after the coordinator's answer is not certain.
    """
    for _ in range(TRIES - 1):
        with suppress(TakenError):
            return _overtake_once(context)
        context.run.mark = new_mark()
        context = make_context(context.run)
    return _overtake_once(context)


def _overtake_once(context: FaultContext) -> SequenceTruth:
    """Let a transaction's second batch overtake its first one while the leader waits.

    Since Kafka 3.6 a leader asks the coordinator before it opens a transaction (KIP-890), and both
    batches wait for the answer. The leader remembers the lower sequence, and rejects the higher one:
    "earliest seen sequence", which can be nothing but a reordering.
    """
    run, where = context.run, context.where
    owner = run.producer(protocol=Protocol.V1)
    owner.begin()
    owner.add(where)
    with RawCluster(run.sandbox) as first, RawCluster(run.sandbox) as second:
        early, late = (replace(owner.sequenced(), cluster=cluster) for cluster in (first, second))
        try:
            _send_both(context, early, late)
        except TakenError:
            owner.end(commit=False)
            raise
        early.send(where, run.options.records, run.options.batch)
    owner.end(commit=True)
    run.await_release(where, owner, 0)
    expected = Expected(
        sequence_class=SequenceClass.REORDERING,
        producer_epoch=owner.producer_epoch,
        form=SequenceForm.EARLIEST_SEEN,
        rejected=(run.options.records,),
        current_sequence=0,
        is_healed=True,
    )
    episode = episode_of(context, owner.producer_id, expected)
    return sequence_truth(context, RULES, [episode])


def _send_both(context: FaultContext, early: SequencedProducer, late: SequencedProducer) -> None:
    """Send both batches while the coordinator is paused, the later one first."""
    run, where = context.run, context.where
    records, batch = run.options.records, run.options.batch
    coordinator = run.cluster.coordinator(run.new_name)
    with ThreadPoolExecutor(2) as pool:
        run.undo.callback(run.sandbox.resume, coordinator)
        run.sandbox.pause(coordinator)
        try:
            rejected = pool.submit(early.expect_rejection, where, records, batch)
            pause(ARRIVAL_SECONDS)
            taken = pool.submit(late.send, where, 0, records)
            pause(ARRIVAL_SECONDS)
        finally:
            run.sandbox.resume(coordinator)
        rejected.result()
        taken.result()


def _prepare_live(run: FaultRun) -> SequenceInjection:
    context = make_context(run)
    ports = {node.id: node.port for node in run.sandbox.state.brokers}
    proxy = run.undo.enter_context(CorruptingProxy(ports))
    batch = _batch(run)
    client = open_client(context, bootstrap_servers=proxy.bootstrap_servers, batch=batch)
    write_all(context, client, batch)
    return partial(_inject_live, context, proxy, client)


def _batch(run: FaultRun) -> int:
    """Return how many records go in one batch, so that at least two of them are under way."""
    is_limited = run.options.client is Client.LIBRDKAFKA
    return min(run.options.batch, MOST_UNDER_WAY // 2 if is_limited else run.options.batch)


def _inject_live(
    context: FaultContext, proxy: CorruptingProxy, client: StepwiseProducer
) -> SequenceTruth:
    options = context.run.options
    producer_id, epoch = only_producer(context)
    end = end_of(context)
    proxy.spoil_next()
    client.hand_over(options.records)
    await_rejection(context, producer_id)
    application_notified = client.has_given_up()
    if application_notified and isinstance(client, StepwiseLibrdkafka):
        client.start_over(options.records)
    await_condition(
        lambda: end_of(context) >= end + options.records,
        f"{context.topic} did not take the retries",
    )
    client.close()
    expected = Expected(
        sequence_class=SequenceClass.REORDERING, client=options.client, producer_epoch=epoch
    )
    episode = episode_of(context, producer_id, expected)
    if proxy.spoiled != 1 or episode.appended_epoch != episode.leader_epoch:
        raise SandboxError(f"{context.run.fault} came otherwise: {episode}")
    return sequence_truth(context, RULES, [episode], application_notified=application_notified)
