"""What faults about sequences share: who writes, what brokers wrote of it, and the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rules.errors import SandboxError
from rules.facts.identity import TopicPartition
from service.sandbox.faults.disk_batches import batches_on_disk
from service.sandbox.faults.fault_context import FaultContext
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.replicas import await_condition
from service.sandbox.faults.sequence_check import Expected, Seen, episode
from service.sandbox.faults.sequence_lines import old_epochs_on, rejections_on
from service.sandbox.faults.sequence_names import Client
from service.sandbox.faults.sequence_truth import SequenceEpisode, SequenceTruth
from service.sandbox.workloads.java_stepwise import (
    JavaConsoleProducer,
    JavaTransactionalProducer,
)
from service.sandbox.workloads.log_requests import log_end
from service.sandbox.workloads.raw_cluster import patiently
from service.sandbox.workloads.stepwise_producer import (
    DELIVERY_MS,
    StepwiseLibrdkafka,
    StepwiseProducer,
)

SequenceInjection = Callable[[], SequenceTruth]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRules:
    """The rules that have to find it, those that would be wrong, and when it is over."""

    rule: str | None = None
    also: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    ends: str


# ---------------------------------------------------------------------- who writes
def open_client(
    context: FaultContext,
    *,
    bootstrap_servers: str | None = None,
    batch: int | None = None,
    delivery_ms: int = DELIVERY_MS,
) -> StepwiseProducer:
    """Return the client library that the caller chose; undoing the fault ends it."""
    stage, batch = context.stage, batch or context.stage.options.batch
    servers = bootstrap_servers or stage.sandbox.bootstrap_servers
    name = stage.new_name if stage.options.transactional else None
    client: StepwiseProducer
    if stage.options.client is Client.LIBRDKAFKA:
        client = StepwiseLibrdkafka(
            servers, context.topic, batch=batch, transactional_id=name, delivery_ms=delivery_ms
        )
    elif name is None:
        client = JavaConsoleProducer(
            sandbox=stage.sandbox,
            bootstrap_servers=servers,
            topic=context.topic,
            batch=batch,
            delivery_ms=delivery_ms,
        )
    else:
        client = JavaTransactionalProducer(
            sandbox=stage.sandbox,
            bootstrap_servers=servers,
            topic=context.topic,
            batch=batch,
            transactional_id=name,
        )
    stage.undo.callback(client.close)
    return client


def end_of(context: FaultContext) -> int:
    """Return the log end of the first partition."""
    return patiently(partial(log_end, context.stage.cluster, context.partitions[0]))


def write_all(context: FaultContext, client: StepwiseProducer, count: int) -> None:
    """Hand records over and wait until as many are appended and replicated."""
    wanted = end_of(context) + count
    client.hand_over(count)
    await_condition(
        lambda: context.observe()[0].high_watermark >= wanted,
        f"{context.topic} does not take the records of the {context.stage.options.client} client",
    )
    client.hold()


def only_producer(context: FaultContext) -> tuple[int, int]:
    """Return the id and the epoch of the one producer that the leader remembers."""
    found = patiently(partial(context.stage.cluster.producers, context.partitions[0]))
    if len(found) != 1:
        raise SandboxError(f"{context.topic} has {len(found)} producers, and was to have one")
    return found[0].producer_id, found[0].producer_epoch


# ---------------------------------------------------------------------- what became of it
def await_rejection(context: FaultContext, where: TopicPartition, producer_id: int) -> None:
    """Wait until a broker has written that it rejected a batch."""
    await_condition(
        lambda: any(
            one.producer_id == producer_id for one in rejections_on(context.stage.sandbox, where)
        ),
        f"no broker rejected a batch of {context.topic}",
    )


def seen_of(context: FaultContext, where: TopicPartition, producer_id: int) -> Seen:
    """Observe the brokers' logs, and at the leader's files, for one producer."""
    sandbox, placed = context.stage.sandbox, patiently(partial(context.stage.cluster.placed, where))
    return Seen(
        rejections=[one for one in rejections_on(sandbox, where) if one.producer_id == producer_id],
        batches=batches_on_disk(sandbox, placed.leader, where).get(producer_id, []),
        leader_epoch=placed.leader_epoch,
    )


def episode_of(
    context: FaultContext, where: TopicPartition, producer_id: int, expected: Expected
) -> SequenceEpisode:
    """Return what happened to one producer; raise when it is not what was expected."""
    return episode(where, expected, seen_of(context, where, producer_id))


def sequence_truth(
    context: FaultContext,
    told: ExpectedRules,
    episodes: Sequence[SequenceEpisode],
    *,
    loss: LossTruth | None = None,
    expected_application: bool = False,
) -> SequenceTruth:
    """Put the truth together; a line of another producer on the topic is none of it."""
    sandbox = context.stage.sandbox
    found = [line for where in context.partitions for line in rejections_on(sandbox, where)]
    strangers = {line.producer_id for line in found} - {one.producer_id for one in episodes}
    # A Java client goes on sending what was in flight: there may be more lines by now, never less.
    if strangers or len(found) < sum(one.lines for one in episodes):
        raise SandboxError(
            f"{context.stage.fault} came otherwise: {len(found)} lines for {episodes}"
        )
    return SequenceTruth(
        fault=context.stage.fault,
        topic=context.topic,
        topic_id=context.topic_id() if loss is None else loss.topic_id,
        rule=told.rule,
        also=told.also,
        silent=told.silent,
        episodes=tuple(episodes),
        old_epoch_lines=sum(len(old_epochs_on(sandbox, where)) for where in context.partitions),
        expected_application=expected_application,
        loss=loss,
        ends=told.ends,
        undo=() if loss is None else loss.undo,
    )
