"""Two producers of one partition are rejected at once: one has lost records, the other one has not.

A stale replica became leader, which cost the first producer what it had acknowledged. The second one
begins only then, and its batches come in another order.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.faults.committed_loss import elect_stale, leave_alone
from service.sandbox.faults.fault_context import FaultContext, make_context
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.sequence_check import Expected
from service.sandbox.faults.sequence_context import (
    SequenceInjection,
    episode_of,
    sequence_truth,
    write_all,
)
from service.sandbox.faults.sequence_loss import LOST, NEXT, REPLICATED, RULES, return_leader
from service.sandbox.faults.sequence_names import GAP_REORDERING, Client
from service.sandbox.faults.sequence_truth import SequenceEpisode, SequenceTruth
from service.sandbox.faults.sequence_writer import TRIES, RawWriter
from service.sandbox.workloads.sequenced_producer import SequencedProducer, new_producer


def prepare_two_producers(run: FaultRun) -> SequenceInjection:
    """Let only the leader hold the last acknowledged records of the first producer."""
    context = make_context(run, is_unclean=True)
    loser = RawWriter.open(context)
    write_all(context, loser, REPLICATED)
    leave_alone(context)
    write_all(context, loser, run.options.records)
    return partial(_inject, context, loser)


def _inject(context: FaultContext, loser: RawWriter) -> SequenceTruth:
    run, where, batch = context.run, context.partitions[0], context.run.options.batch
    before = elect_stale(context)
    other = new_producer(run.cluster, run.new_name)
    other.send(where, 0, batch)
    other.expect_rejection(where, 2 * batch, batch)
    loser.be_rejected(NEXT)
    other.expect_rejection(where, 3 * batch, batch)
    for number in (1, 2, 3):
        other.send(where, number * batch, batch)
    ends = return_leader(context)
    loss = context.truth(before, LOST, ends=ends)
    episodes = [_lost(context, loser), _reordered(context, other)]
    also = (*RULES.also, GAP_REORDERING)
    silent = tuple(rule for rule in RULES.silent if rule != GAP_REORDERING)
    rules = replace(RULES, also=also, silent=silent, ends=ends)
    return sequence_truth(context, rules, episodes, loss=loss, application_notified=True)


def _lost(context: FaultContext, loser: RawWriter) -> SequenceEpisode:
    expected = Expected(
        sequence_class=SequenceClass.LOSS,
        client=Client.RAW,
        producer_epoch=0,
        rejected=(REPLICATED + context.run.options.records,) * TRIES,
        current_sequence=REPLICATED - 1,
        is_healed=False,
    )
    return episode_of(context, context.partitions[0], loser.producer.producer_id, expected)


def _reordered(context: FaultContext, other: SequencedProducer) -> SequenceEpisode:
    batch = context.run.options.batch
    expected = Expected(
        sequence_class=SequenceClass.REORDERING,
        client=Client.RAW,
        producer_epoch=0,
        rejected=(2 * batch, 3 * batch),
        current_sequence=batch - 1,
        is_healed=True,
    )
    return episode_of(context, context.partitions[0], other.producer_id, expected)
