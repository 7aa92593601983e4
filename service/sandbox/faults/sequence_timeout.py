"""A clean failover during which a client gives a batch up: no broker finds anything out of order.

The client reports it to its application, raises its epoch by itself and goes on from sequence 0. What it gave
up may still be on its way: when it arrives it is of an old epoch (INVALID_PRODUCER_EPOCH), which
resembles a fenced producer and is none.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rules.errors import SandboxError
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.faults.fault_context import Before, FaultContext, Verdict, make_context
from service.sandbox.faults.fault_run import Client, FaultRun
from service.sandbox.faults.losses import fail_over, return_leader
from service.sandbox.faults.rule_names import CLEAN_CHANGE_RULES, EVERY_SEQUENCE_RULE
from service.sandbox.faults.sequence_context import (
    SequenceInjection,
    end_of,
    only_producer,
    open_client,
    sequence_truth,
    write_all,
)
from service.sandbox.faults.sequence_lines import old_epochs_on
from service.sandbox.faults.sequence_truth import SequenceTruth
from service.sandbox.workloads.broker_proxy import StallingProxy
from service.sandbox.workloads.raw_producer import (
    OLD_EPOCH,
    SequencedProducer,
    new_producer,
)
from service.sandbox.workloads.stepwise_producer import StepwiseProducer

DELIVERY_MS: Final = 15_000  # longer than an election takes, also with Kafka's own time-outs
FENCED: Final = "producer_fenced"
OVER: Final = "it is over: another broker leads, and the client goes on"
RULES: Final = Verdict(silent=(*EVERY_SEQUENCE_RULE, *CLEAN_CHANGE_RULES, FENCED), ends=OVER)


def prepare_delivery_timeout(run: FaultRun) -> SequenceInjection:
    """Let a producer write a batch that every replica has."""
    context = make_context(run, min_isr=2, has_bystander=True)
    if run.options.client is Client.RAW:
        producer = new_producer(run.cluster, run.new_name)
        producer.send(context.where, 0, run.options.batch)
        return partial(_inject, context, producer)
    ports = {node.id: node.port for node in run.sandbox.state.brokers}
    proxy = run.undo.enter_context(StallingProxy(ports))
    client = open_client(
        context, bootstrap_servers=proxy.bootstrap_servers, delivery_ms=DELIVERY_MS
    )
    write_all(context, client, run.options.batch)
    return partial(_inject_live, context, proxy, client)


def _inject(context: FaultContext, producer: SequencedProducer) -> SequenceTruth:
    where, batch = context.where, context.run.options.batch
    before = context.before()
    fail_over(context, before)
    producer.producer_epoch = 1
    producer.send(where, 0, batch)
    producer.producer_epoch = 0  # what was given up, and comes late
    producer.expect_rejection(where, batch, batch, error=OLD_EPOCH)
    return _build_truth(context, before)


def _inject_live(
    context: FaultContext, proxy: StallingProxy, client: StepwiseProducer
) -> SequenceTruth:
    batch, before = context.run.options.batch, context.before()
    end = end_of(context)
    proxy.stall()
    # A single record: a busy client may send several in two batches, and deliver the second one, which
    # is then out of order, after it has given up the first.
    client.hand_over(1)
    fail_over(context, before)
    leader = context.run.cluster.placed(context.where).leader
    port = context.run.sandbox.state.node(leader).port
    await_condition(
        lambda: proxy.count_held(port) > 0,
        f"the client does not try broker {leader}, the new leader",
    )
    await_condition(client.has_given_up, "the client does not give up what it cannot deliver")
    proxy.go_on()
    client.hand_over(batch)
    await_condition(
        lambda: end_of(context) >= end + batch, f"the client does not go on on {context.topic}"
    )
    proxy.deliver_late()
    return _build_truth(context, before)


def _build_truth(context: FaultContext, before: Before) -> SequenceTruth:
    run, where = context.run, context.where
    await_condition(
        lambda: len(old_epochs_on(run.sandbox, where)) > 0,
        f"no broker rejected a batch of an old epoch for {where}",
    )
    return_leader(context)
    loss = context.truth(before, Verdict(silent=CLEAN_CHANGE_RULES, ends=OVER))
    _, epoch = only_producer(context)
    if loss.lost_offsets or loss.was_unclean or epoch != 1:
        raise SandboxError(f"{run.fault} came otherwise: {loss}")
    return sequence_truth(context, RULES, [], loss=loss, application_notified=True)
