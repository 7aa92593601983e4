"""Batches that arrive in another order than they were sent: rejected at first, and taken later.

By single requests each form of the broker's rejection can be made. A client library only sends in
order; there a request is spoiled on its way, so that those behind it come too early.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from rules.facts.identity import TopicPartition
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.faults.fault_context import FaultContext, make_context
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.replicas import await_condition
from service.sandbox.faults.sequence_check import Expected
from service.sandbox.faults.sequence_context import (
    ExpectedRules,
    SequenceInjection,
    await_rejection,
    end_of,
    episode_of,
    only_producer,
    open_client,
    sequence_truth,
    write_all,
)
from service.sandbox.faults.sequence_names import (
    DUPLICATES,
    GAP_REORDERING,
    NOTHING_LOST,
    SEQUENCE_BUG,
    Client,
)
from service.sandbox.faults.sequence_truth import SequenceTruth
from service.sandbox.faults.sequence_verification import overtake
from service.sandbox.faults.sequence_writer import in_transaction
from service.sandbox.workloads.broker_proxy import CorruptingProxy
from service.sandbox.workloads.raw_producer import Protocol
from service.sandbox.workloads.sequenced_producer import SequencedProducer, after, new_producer
from service.sandbox.workloads.stepwise_producer import (
    MOST_UNDER_WAY,
    StepwiseLibrdkafka,
    StepwiseProducer,
)

RULES: Final = ExpectedRules(
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
        return partial(overtake, context, RULES)
    producer = new_producer(run.cluster, run.new_name)
    producer.send(context.partitions[0], 0, options.batch)
    return partial(_inject, context, producer)


# ---------------------------------------------------------------------- by single requests
def swap(
    context: FaultContext, where: TopicPartition, producer: SequencedProducer, first: int
) -> int:
    """Send a batch before the records that belong in front of it; return its sequence."""
    options = context.run.options
    early, late = after(first, options.records), first
    producer.expect_rejection(where, early, options.batch)
    for size in context.batches(options.records):
        producer.send(where, late, size)
        late = after(late, size)
    producer.send(where, early, options.batch)
    return early


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
    truth = _build_truth(context, in_transaction(owner), 0)
    owner.end(commit=True)
    context.run.await_release(context.partitions[0], owner, truth.episodes[0].offset)
    return truth


def _build_truth(context: FaultContext, producer: SequencedProducer, first: int) -> SequenceTruth:
    where, form = context.partitions[0], context.run.options.form
    rejected = swap(context, where, producer, first)
    expected = Expected(
        sequence_class=SequenceClass.REORDERING,
        client=Client.RAW,
        producer_epoch=producer.producer_epoch,
        form=form,
        rejected=(rejected,),
        current_sequence=first - 1 if form is SequenceForm.OUT_OF_ORDER else None,
        is_healed=True,
    )
    episode = episode_of(context, where, producer.producer_id, expected)
    return sequence_truth(context, RULES, [episode])


# ---------------------------------------------------------------------- by client libraries
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
    where, options = context.partitions[0], context.run.options
    producer_id, epoch = only_producer(context)
    end = end_of(context)
    proxy.spoil_next()
    client.hand_over(options.records)
    await_rejection(context, where, producer_id)
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
    episode = episode_of(context, where, producer_id, expected)
    if proxy.spoiled != 1 or episode.appended_epoch != episode.leader_epoch:
        raise SandboxError(f"{context.run.fault} came otherwise: {episode}")
    return sequence_truth(context, RULES, [episode], application_notified=application_notified)
