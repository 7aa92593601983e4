"""Acknowledged records of one producer are gone, and it goes on behind them.

As in committed-loss a stale replica becomes leader. The producer's next batch does not follow what
that one has: "expected 3, got 27", where 24 records were lost.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.faults.fault_context import KEPT, Before, FaultContext, Verdict, make_context
from service.sandbox.faults.fault_run import Client, FaultRun
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.losses import elect_stale, leave_alone, return_leader
from service.sandbox.faults.rule_names import (
    COMMITTED_BEYOND_END,
    COMMITTED_LOST,
    GAP_LOSS,
    GAP_REORDERING,
    UNCLEAN_ELECTION,
    UNREPLICATED_LOST,
)
from service.sandbox.faults.sequence_context import (
    TRIES,
    RawWriter,
    SequenceInjection,
    await_rejection,
    end_of,
    episode_of,
    only_producer,
    open_client,
    sequence_truth,
    write_all,
)
from service.sandbox.faults.sequence_truth import Expected, SequenceEpisode, SequenceTruth
from service.sandbox.workloads.producer import value_of
from service.sandbox.workloads.raw_producer import VALUE_BYTES, new_producer
from service.sandbox.workloads.stepwise_producer import JavaTransactionalProducer, StepwiseProducer

REPLICATED: Final = 3  # records of the producer that every replica has
NEXT: Final = 5  # records that it goes on with
MOST_UNREAD: Final = (
    2  # records whose answers are under way at a time: far apart, they go one by one
)
LOST: Final = Verdict(
    rule=COMMITTED_LOST,
    also=(UNCLEAN_ELECTION,),
    silent=(UNREPLICATED_LOST, COMMITTED_BEYOND_END),
    ends="never",
)
RULES: Final = Verdict(
    rule=GAP_LOSS,
    also=(COMMITTED_LOST, UNCLEAN_ELECTION),
    silent=(GAP_REORDERING, *LOST.silent),
    ends="never",
)
# Nobody has seen the burst: from offsets alone nothing but the election can be found.
UNSEEN: Final = replace(
    RULES, also=(UNCLEAN_ELECTION,), silent=(GAP_REORDERING, COMMITTED_BEYOND_END)
)


def prepare_sequence_loss(run: FaultRun) -> SequenceInjection:
    """Let only the leader hold the last acknowledged records of a producer."""
    options = run.options
    context = make_context(run, is_unclean=True)
    writer = RawWriter.open(context) if options.client is Client.RAW else open_client(context)
    if options.form is not SequenceForm.EXPECTED_ZERO:
        write_all(context, writer, REPLICATED)
    leave_alone(context)
    if isinstance(writer, RawWriter) and options.form is not SequenceForm.OUT_OF_ORDER:
        writer.begin_epoch()
    if not options.burst:
        write_all(context, writer, options.records)
    return partial(_inject, context, writer)


def _inject(context: FaultContext, writer: StepwiseProducer) -> SequenceTruth:
    run = context.run
    noted = _write_burst(context, writer) if run.options.burst else None
    producer_id, epoch = only_producer(context)
    before = elect_stale(context, noted)
    _go_on(context, writer, producer_id)
    ends = return_leader(context)
    loss = context.truth(before, replace(LOST, ends=ends))
    episode = episode_of(context, producer_id, _expected(context, epoch))
    # A frozen client does not read the last answers: it sends again what it has no answer for.
    _require_gap(episode, loss, unread=MOST_UNREAD if _is_frozen(writer) else 0)
    application_notified = writer.has_given_up()
    writer.close()
    return sequence_truth(
        context,
        replace(UNSEEN if run.options.burst else RULES, ends=ends),
        [episode],
        loss=loss,
        application_notified=application_notified,
    )


def _write_burst(context: FaultContext, writer: StepwiseProducer) -> Before:
    """Observe, then write what is to be lost without delay, so that nobody else observes it."""
    before = context.before()
    [state], [records] = before.states, before.records
    write_all(context, writer, context.run.options.records)
    before.states = context.observe()
    if not isinstance(writer, JavaTransactionalProducer):  # its records are random letters
        first = state.high_watermark - KEPT  # as many records as it has sent before
        if isinstance(writer, RawWriter):  # whose records are named by their sequences
            first = writer.next_sequence - context.run.options.records
        for number, offset in enumerate(
            range(state.high_watermark, before.states[0].high_watermark), start=first
        ):
            records[offset] = value_of(number, VALUE_BYTES)
    return before


def _go_on(context: FaultContext, writer: StepwiseProducer, producer_id: int) -> None:
    """Let the producer go on with its next records, which the new leader rejects."""
    end = end_of(context)
    if isinstance(writer, RawWriter):
        writer.be_rejected(NEXT)
        return
    writer.hand_over(NEXT)
    await_rejection(context, producer_id)
    options = context.run.options
    if options.client is Client.JAVA and not options.transactional:
        await_condition(  # under a new epoch, and its application never knows
            lambda: end_of(context) >= end + NEXT,
            f"the Java client does not go on on {context.topic}",
        )


def _expected(context: FaultContext, epoch: int) -> Expected:
    """Return what is seen of the producer that lost records."""
    options = context.run.options
    is_raw, is_plain = options.client is Client.RAW, options.form is SequenceForm.OUT_OF_ORDER
    is_counted = is_raw or not (options.client is Client.JAVA and options.transactional)
    incoming = options.records + (REPLICATED if is_plain else 0)
    return Expected(
        sequence_class=SequenceClass.LOSS,
        client=options.client,
        producer_epoch=epoch,
        form=options.form,
        rejected=(incoming,) * TRIES if is_raw else None,
        current_sequence=REPLICATED - 1 if is_plain and is_counted else None,
        is_healed=False,
    )


def _is_frozen(writer: StepwiseProducer) -> bool:
    return isinstance(writer, JavaTransactionalProducer)


def _require_gap(episode: SequenceEpisode, loss: LossTruth, *, unread: int = 0) -> None:
    """Compare two ways to count: missing sequences, and offsets that are gone.

    Of those that are gone, `unread` at most were acknowledged without the producer reading it.
    """
    if episode.gap is None or not 0 <= loss.lost_offsets - episode.gap <= unread:
        raise SandboxError(f"{loss.fault} came otherwise: {loss.lost_offsets} are gone, {episode}")


def prepare_two_producers(run: FaultRun) -> SequenceInjection:
    """Let only the leader hold the last acknowledged records of the first of two producers.

    The second one begins only after the loss, and its batches come in another order.
    """
    context = make_context(run, is_unclean=True)
    loser = RawWriter.open(context)
    write_all(context, loser, REPLICATED)
    leave_alone(context)
    write_all(context, loser, run.options.records)
    return partial(_inject_two, context, loser)


def _inject_two(context: FaultContext, loser: RawWriter) -> SequenceTruth:
    """Let both be rejected at once: one has lost records, the other one has not."""
    run, where, batch = context.run, context.where, context.run.options.batch
    before = elect_stale(context)
    other = new_producer(run.cluster, run.new_name)
    other.send(where, 0, batch)
    other.expect_rejection(where, 2 * batch, batch)
    loser.be_rejected(NEXT)
    other.expect_rejection(where, 3 * batch, batch)
    for number in (1, 2, 3):
        other.send(where, number * batch, batch)
    ends = return_leader(context)
    loss = context.truth(before, replace(LOST, ends=ends))
    reordered = Expected(
        sequence_class=SequenceClass.REORDERING,
        producer_epoch=0,
        rejected=(2 * batch, 3 * batch),
        current_sequence=batch - 1,
        is_healed=True,
    )
    episodes = [
        episode_of(context, loser.producer.producer_id, _expected(context, 0)),
        episode_of(context, other.producer_id, reordered),
    ]
    also = (*RULES.also, GAP_REORDERING)
    silent = tuple(rule for rule in RULES.silent if rule != GAP_REORDERING)
    rules = replace(RULES, also=also, silent=silent, ends=ends)
    return sequence_truth(context, rules, episodes, loss=loss, application_notified=True)
