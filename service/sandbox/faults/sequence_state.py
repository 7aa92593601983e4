"""A leader that has forgotten a producer, because `producer.id.expiration.ms` is over.

It is counted by the records' own timestamps, so that a producer of old records is forgotten at once.
What comes next is taken, whatever sequence it bears: no gap can be found. With transactions v2 it
is rejected, because each of these transactions begins with sequence 0.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.faults.broker_settings import changed_setting
from service.sandbox.faults.fault_context import FaultContext, Verdict, make_context
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.rule_names import (
    DUPLICATES,
    EVERY_SEQUENCE_RULE,
    GAP_REORDERING,
    NOTHING_LOST,
    SEQUENCE_BUG,
)
from service.sandbox.faults.sequence_check import Expected
from service.sandbox.faults.sequence_context import (
    SequenceInjection,
    episode_of,
    sequence_truth,
)
from service.sandbox.faults.sequence_truth import SequenceTruth
from service.sandbox.faults.sequence_writer import TRIES, in_transaction
from service.sandbox.workloads.raw_producer import Protocol, RawProducer
from service.sandbox.workloads.sequenced_producer import SequencedProducer, new_producer

REMEMBERED_FOR: Final = "producer.id.expiration.ms"
OLD: Final = timedelta(days=2)  # by default producers are remembered for one
FAR_AWAY: Final = 12_345  # a sequence that follows nothing
UNSEEN: Final = Verdict(
    silent=(*EVERY_SEQUENCE_RULE, *NOTHING_LOST),
    ends="it is over: the batch was taken, whatever is missing before it",
)
REJECTED: Final = Verdict(
    rule=DUPLICATES,
    silent=(*NOTHING_LOST, GAP_REORDERING, SEQUENCE_BUG),
    ends="when the producer is made anew",
)


def prepare_state_expired(run: FaultRun) -> SequenceInjection:
    """Let a producer write, and its leader forget it."""
    context = make_context(run)
    where = context.where
    if run.options.form is SequenceForm.EXPECTED_ZERO:
        return partial(_inject_transaction, context, _forgotten_owner(context))
    producer = new_producer(run.cluster, run.new_name)
    producer.records_age = OLD
    producer.send(where, 0, run.options.batch)
    _await_forgotten(context, producer.producer_id)
    return partial(_inject, context, producer)


def _inject(context: FaultContext, producer: SequencedProducer) -> SequenceTruth:
    producer.send(context.where, FAR_AWAY, context.run.options.batch)
    return sequence_truth(context, UNSEEN, [])


def _forgotten_owner(context: FaultContext) -> RawProducer:
    """Commit a transaction, whose marker is of now: only a shorter memory forgets it."""
    run, where = context.run, context.where
    owner = run.producer(protocol=Protocol.V2)
    owner.begin()
    start = in_transaction(owner).send(where, 0, run.options.batch)
    owner.end(commit=True)
    run.await_release(where, owner, start)
    with changed_setting(run, run.cluster.placed(where).leader, REMEMBERED_FOR, "1"):
        _await_forgotten(context, owner.producer_id)
    return owner


def _inject_transaction(context: FaultContext, owner: RawProducer) -> SequenceTruth:
    """Go on in the next transaction as if it were the same one."""
    batch, producer = context.run.options.batch, in_transaction(owner)
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
