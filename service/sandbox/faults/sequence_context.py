"""What faults about sequences share: the client, what brokers logged about it, and the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.faults.disk_batches import batches_on_disk
from service.sandbox.faults.fault_context import FaultContext, Verdict
from service.sandbox.faults.fault_run import Client
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.sequence_lines import Rejection, old_epochs_on, rejections_on
from service.sandbox.faults.sequence_truth import (
    Expected,
    RejectedTransactionTruth,
    Seen,
    SequenceEpisode,
    SequenceTruth,
    episode,
)
from service.sandbox.workloads.log_requests import log_end
from service.sandbox.workloads.raw_cluster import patiently
from service.sandbox.workloads.raw_producer import (
    Protocol,
    RawProducer,
    SequencedProducer,
    after,
    new_producer,
)
from service.sandbox.workloads.stepwise_producer import (
    DELIVERY_MS,
    JavaConsoleProducer,
    JavaTransactionalProducer,
    StepwiseLibrdkafka,
    StepwiseProducer,
)

SequenceInjection = Callable[[], SequenceTruth]
TRIES: Final = 3  # an old client sends a rejected batch again and again


def open_client(
    context: FaultContext,
    *,
    bootstrap_servers: str | None = None,
    batch: int | None = None,
    delivery_ms: int = DELIVERY_MS,
) -> StepwiseProducer:
    """Return the client library that the caller chose; undoing the fault ends it."""
    run, batch = context.run, batch or context.run.options.batch
    servers = bootstrap_servers or run.sandbox.bootstrap_servers
    name = run.new_name if run.options.transactional else None
    client: StepwiseProducer
    if run.options.client is Client.LIBRDKAFKA:
        client = StepwiseLibrdkafka(
            servers, context.topic, batch=batch, transactional_id=name, delivery_ms=delivery_ms
        )
    elif name is None:
        client = JavaConsoleProducer(
            run.sandbox, servers, context.topic, batch=batch, delivery_ms=delivery_ms
        )
    else:
        client = JavaTransactionalProducer(
            run.sandbox, servers, context.topic, batch=batch, transactional_id=name
        )
    run.undo.callback(client.close)
    return client


def end_of(context: FaultContext) -> int:
    """Return the log end of the first partition."""
    return patiently(partial(log_end, context.run.cluster, context.where))


def write_all(context: FaultContext, client: StepwiseProducer, count: int) -> None:
    """Hand records over and wait until as many are appended and replicated."""
    target = end_of(context) + count
    client.hand_over(count)
    await_condition(
        lambda: context.observe()[0].high_watermark >= target,
        f"{context.topic} does not take the records of the {context.run.options.client} client",
    )
    client.hold()


def only_producer(context: FaultContext) -> tuple[int, int]:
    """Return the id and the epoch of the one producer that the leader remembers."""
    producers = patiently(partial(context.run.cluster.producers, context.where))
    if len(producers) != 1:
        raise SandboxError(f"{context.topic} has {len(producers)} producers, and was to have one")
    return producers[0].producer_id, producers[0].producer_epoch


def await_rejection(context: FaultContext, producer_id: int) -> None:
    """Wait until a broker has written that it rejected a batch."""
    await_condition(
        lambda: bool(_rejections_of(context, producer_id)),
        f"no broker rejected a batch of {context.topic}",
    )


def episode_of(context: FaultContext, producer_id: int, expected: Expected) -> SequenceEpisode:
    """Return what happened to one producer, by the brokers' logs and the leader's files.

    Raises:
        SandboxError: it is not what was expected.
    """
    sandbox, where = context.run.sandbox, context.where
    placed = patiently(partial(context.run.cluster.placed, where))
    seen = Seen(
        rejections=_rejections_of(context, producer_id),
        batches=batches_on_disk(sandbox, placed.leader, where).get(producer_id, []),
        leader_epoch=placed.leader_epoch,
    )
    return episode(where, expected, seen)


def _rejections_of(context: FaultContext, producer_id: int) -> list[Rejection]:
    rejections = rejections_on(context.run.sandbox, context.where)
    return [rejection for rejection in rejections if rejection.producer_id == producer_id]


def sequence_truth(  # noqa: PLR0913 - what happened, and what a monitor should find
    context: FaultContext,
    expected: Verdict,
    episodes: Sequence[SequenceEpisode],
    *,
    loss: LossTruth | None = None,
    application_notified: bool = False,
    transaction: RejectedTransactionTruth | None = None,
) -> SequenceTruth:
    """Put the truth together; a line of another producer on the topic is none of it."""
    sandbox = context.run.sandbox
    lines = [line for where in context.partitions for line in rejections_on(sandbox, where)]
    strangers = {line.producer_id for line in lines} - {episode.producer_id for episode in episodes}
    # A Java client goes on sending what was in flight: there may be more lines by now, never less.
    if strangers or len(lines) < sum(episode.lines for episode in episodes):
        raise SandboxError(f"{context.run.fault} came otherwise: {len(lines)} lines for {episodes}")
    return SequenceTruth(
        fault=context.run.fault,
        topic=context.topic,
        topic_id=context.topic_id() if loss is None else loss.topic_id,
        rule=expected.rule,
        also=expected.also,
        silent=expected.silent,
        episodes=tuple(episodes),
        old_epoch_lines=sum(len(old_epochs_on(sandbox, where)) for where in context.partitions),
        application_notified=application_notified,
        loss=loss,
        transaction=transaction,
        ends=expected.ends,
        undo=() if loss is None else loss.undo,
    )


@dataclass(slots=True, kw_only=True)
class RawWriter:
    """A stepwise producer of single requests, in batches of the size that the options name."""

    context: FaultContext
    producer: SequencedProducer
    owner: RawProducer | None  # of the transaction; None: without
    next_sequence: int = field(default=0, init=False)

    @classmethod
    def open(cls, context: FaultContext) -> Self:
        """Return one with a producer id of its own; the form decides whether it has a transaction."""
        run = context.run
        if run.options.form is not SequenceForm.EXPECTED_ZERO:
            producer = new_producer(run.cluster, run.new_name)
            return cls(context=context, producer=producer, owner=None)
        owner = run.producer(protocol=Protocol.V2)
        owner.begin()
        return cls(context=context, producer=owner.sequenced(), owner=owner)

    def begin_epoch(self) -> None:
        """Begin with sequence 0 in a new epoch; a transaction has begun with one already."""
        if self.owner is None:
            self.producer.producer_epoch += 1
        self.next_sequence = 0

    def hand_over(self, count: int) -> None:
        """Append so many records more."""
        for size in self.context.batches(count):
            self.producer.send(self.context.where, self.next_sequence, size)
            self.next_sequence = after(self.next_sequence, size)

    def hold(self) -> None:
        """Do nothing: it sends nothing by itself."""

    def be_rejected(self, count: int) -> None:
        """Try to append so many records more, several times, and give them up."""
        for _ in range(TRIES):
            self.producer.expect_rejection(self.context.where, self.next_sequence, count)
        if self.owner is not None:
            self.owner.end(commit=False)
            self.context.run.await_release(self.context.where, self.owner, 0)

    def has_given_up(self) -> bool:
        """Return True: an application would have got an error."""
        return True

    def close(self) -> None:
        """Do nothing: there are no connections of its own."""
