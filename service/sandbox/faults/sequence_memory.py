"""What a leader remembers of a producer, and what it takes for new: no record is lost.

It remembers the last five batches. One that is among them, to the letter, is acknowledged again without
a word; every other repetition is rejected as out of order.

It forgets a producer when `producer.id.expiration.ms` is over, which is counted by the records' own
timestamps, so that a producer of old records is forgotten at once. What comes next is taken, whatever
sequence it bears: no gap can be found. With transactions v2 it is rejected, because each of these
transactions begins with sequence 0.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.faults.fault_context import FaultContext, Verdict, make_context
from service.sandbox.faults.fault_run import FaultRun, changed_setting
from service.sandbox.faults.rule_names import (
    DUPLICATES,
    EVERY_SEQUENCE_RULE,
    GAP_REORDERING,
    NOTHING_LOST,
    SEQUENCE_BUG,
)
from service.sandbox.faults.sequence_context import (
    TRIES,
    SequenceInjection,
    end_of,
    episode_of,
    sequence_truth,
)
from service.sandbox.faults.sequence_truth import Expected, SequenceTruth
from service.sandbox.workloads.raw_producer import (
    Protocol,
    RawProducer,
    SequencedProducer,
    new_producer,
)

REMEMBERED: Final = 5  # batches per producer (ProducerStateEntry of the broker)
REMEMBERED_FOR: Final = "producer.id.expiration.ms"
OLD: Final = timedelta(days=2)  # by default producers are remembered for one
FAR_AWAY: Final = 12_345  # a sequence that follows nothing
DUPLICATE: Final = Verdict(
    silent=(*EVERY_SEQUENCE_RULE, *NOTHING_LOST), ends="it is over: it was acknowledged again"
)
STALE: Final = Verdict(
    rule=DUPLICATES,
    silent=(*NOTHING_LOST, GAP_REORDERING, SEQUENCE_BUG),
    ends="it is over: the records are there already",
)
RESTART: Final = Verdict(
    rule=SEQUENCE_BUG,
    silent=(*NOTHING_LOST, DUPLICATES),
    ends="never: the client goes on like that until it is mended",
)
FORGOTTEN: Final = Verdict(
    silent=(*EVERY_SEQUENCE_RULE, *NOTHING_LOST),
    ends="it is over: the batch was taken, whatever is missing before it",
)
REJECTED: Final = Verdict(
    rule=DUPLICATES,
    silent=(*NOTHING_LOST, GAP_REORDERING, SEQUENCE_BUG),
    ends="when the producer is made anew",
)


def prepare_duplicate(run: FaultRun) -> SequenceInjection:
    """Write as many batches as a leader remembers."""
    return partial(_inject_duplicate, *_written(run, REMEMBERED))


def _inject_duplicate(context: FaultContext, producer: SequencedProducer) -> SequenceTruth:
    where, end = context.where, end_of(context)
    first = end - REMEMBERED * context.run.options.batch
    offset = producer.send(where, 0, context.run.options.batch)
    if (offset, end_of(context)) != (first, end):
        raise SandboxError(f"{where} took the duplicate as a new batch at {offset}")
    return sequence_truth(context, DUPLICATE, [])


def prepare_stale_retry(run: FaultRun) -> SequenceInjection:
    """Write one batch more than a leader remembers, or two that will come again as one."""
    batches = 2 if run.options.other_borders else REMEMBERED + 1
    return partial(_inject_stale_retry, *_written(run, batches), batches)


def _inject_stale_retry(
    context: FaultContext, producer: SequencedProducer, batches: int
) -> SequenceTruth:
    options, where = context.run.options, context.where
    count = options.batch * (2 if options.other_borders else 1)
    producer.expect_rejection(where, 0, count)
    expected = Expected(
        sequence_class=SequenceClass.STALE_RETRY,
        producer_epoch=producer.producer_epoch,
        rejected=(0,),
        current_sequence=batches * options.batch - 1,
        is_healed=False,
    )
    if options.resend:
        producer.producer_epoch += 1
        producer.send(where, 0, count)
    episode = episode_of(context, producer.producer_id, expected)
    return sequence_truth(context, STALE, [episode])


def prepare_restart(run: FaultRun) -> SequenceInjection:
    """Write the batch whose sequences the client will not forget."""
    return partial(_inject_restart, *_written(run, 1))


def _inject_restart(context: FaultContext, producer: SequencedProducer) -> SequenceTruth:
    """Go on with the old sequences in two new epochs, again and again."""
    where, batch = context.where, context.run.options.batch
    for _ in range(2):
        producer.producer_epoch += 1
        for _ in range(TRIES):
            producer.expect_rejection(where, batch, batch)
    expected = Expected(
        sequence_class=SequenceClass.SEQUENCE_RESTART,
        producer_epoch=1,
        form=SequenceForm.NEW_EPOCH,
        rejected=(batch,) * 2 * TRIES,
        is_healed=False,
    )
    episode = episode_of(context, producer.producer_id, expected)
    return sequence_truth(context, RESTART, [episode])


def _written(run: FaultRun, batches: int) -> tuple[FaultContext, SequencedProducer]:
    """Return a producer that has written so many batches."""
    context = make_context(run)
    producer, batch = new_producer(run.cluster, run.new_name), run.options.batch
    for number in range(batches):
        producer.send(context.where, number * batch, batch)
    return context, producer


def prepare_state_expired(run: FaultRun) -> SequenceInjection:
    """Let a producer write, and its leader forget it."""
    context = make_context(run)
    if run.options.form is SequenceForm.EXPECTED_ZERO:
        return partial(_inject_transaction, context, _forgotten_owner(context))
    producer = new_producer(run.cluster, run.new_name)
    producer.records_age = OLD
    producer.send(context.where, 0, run.options.batch)
    _await_forgotten(context, producer.producer_id)
    return partial(_inject_far_away, context, producer)


def _inject_far_away(context: FaultContext, producer: SequencedProducer) -> SequenceTruth:
    producer.send(context.where, FAR_AWAY, context.run.options.batch)
    return sequence_truth(context, FORGOTTEN, [])


def _forgotten_owner(context: FaultContext) -> RawProducer:
    """Commit a transaction, whose marker is of now: only a shorter memory forgets it."""
    run, where = context.run, context.where
    owner = run.producer(protocol=Protocol.V2)
    owner.begin()
    start = owner.sequenced().send(where, 0, run.options.batch)
    owner.end(commit=True)
    run.await_release(where, owner, start)
    with changed_setting(run, run.cluster.placed(where).leader, REMEMBERED_FOR, "1"):
        _await_forgotten(context, owner.producer_id)
    return owner


def _inject_transaction(context: FaultContext, owner: RawProducer) -> SequenceTruth:
    """Go on in the next transaction as if it were the same one."""
    batch, producer = context.run.options.batch, owner.sequenced()
    context.run.undo.callback(owner.end, commit=False)
    for _ in range(TRIES):
        producer.expect_rejection(context.where, batch, batch)
    expected = Expected(
        sequence_class=SequenceClass.PRODUCER_STATE_LOST,
        producer_epoch=owner.producer_epoch,
        form=SequenceForm.EXPECTED_ZERO,
        rejected=(batch,) * TRIES,
        is_healed=False,
    )
    episode = episode_of(context, owner.producer_id, expected)
    return sequence_truth(context, REJECTED, [episode])


def _await_forgotten(context: FaultContext, producer_id: int) -> None:
    if context.run.sandbox.state.options.realistic:
        raise SandboxError(f"{context.run.fault}: brokers forget every ten minutes if --realistic")
    await_condition(
        lambda: all(
            producer.producer_id != producer_id
            for producer in context.run.cluster.producers(context.where)
        ),
        f"the leader of {context.topic} has not forgotten its producer",
    )
