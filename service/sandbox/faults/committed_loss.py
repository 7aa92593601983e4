"""Acknowledged records that are gone: a stale replica becomes leader.

The follower is paused until the leader alone is in sync; what producers then write with acks=all is
acknowledged, and no other broker has it. The leader dies, the follower goes on without those
records and is elected all the same (`unclean.leader.election.enable`).
"""

from __future__ import annotations

from functools import partial

from rules.facts.identity import TopicPartition
from service.sandbox.faults.fault_context import (
    Before,
    FaultContext,
    Injection,
    Verdict,
    commit_as_reader,
    epochs,
    make_context,
)
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.loss_truth import LossTruth, LostTransaction
from service.sandbox.faults.replicas import (
    ask_for_unclean,
    await_alone,
    await_in_sync,
    await_leader,
    freeze_follower,
    revive,
)
from service.sandbox.faults.rule_names import (
    COMMITTED_BEYOND_END,
    COMMITTED_LOST,
    UNCLEAN_ELECTION,
    UNREPLICATED_LOST,
)
from service.sandbox.workloads.raw_producer import Protocol, RawProducer


def prepare_committed_loss(run: FaultRun) -> Injection:
    """Let only the leader hold acknowledged records."""
    context = make_context(run, is_unclean=True)
    if run.options.transactional:
        _lose_transactions(context)
    else:
        leave_alone(context)
        context.write(run.options.records)
    if run.options.readers:
        commit_as_reader(context)
    return partial(_inject, context)


def leave_alone(context: FaultContext) -> None:
    """Pause the follower, and wait until nobody but the leader is in sync.

    That takes seconds, and so the follower's last fetch is answered, which the leader keeps for
    `replica.fetch.wait.max.ms` (500 ms): it carries nothing of what is written afterwards.
    """
    freeze_follower(context.run, context.pair, context.partitions)
    await_alone(context.run, context.pair, context.partitions)


def elect_stale(context: FaultContext, noted: Before | None = None) -> Before:
    """Kill the leader and let the follower take over as it is; return what was before.

    `noted` is what was before, where the caller has observed already.
    """
    run, pair, before = context.run, context.pair, noted or context.before()
    run.sandbox.kill(pair.leader)  # first: a follower that goes on earlier would catch up
    revive(run, pair.follower)
    if context.is_unclean and not run.sandbox.state.release.elects_unclean:
        ask_for_unclean(run.cluster, context.partitions)
    await_leader(run, context.partitions, [pair.follower], above=epochs(before))
    return before


def _inject(context: FaultContext) -> LossTruth:
    before = elect_stale(context)
    ends = "never: the records are on the old leader's disk until it comes back and truncates"
    if context.run.options.old_leader_returns:
        revive(context.run, context.pair.leader)
        await_in_sync(context.run, context.partitions, [context.pair.leader])
        ends = "never: the old leader has come back and truncated its log"
    beyond = (COMMITTED_BEYOND_END,) if context.groups else ()
    silent = (UNREPLICATED_LOST, *(() if context.groups else (COMMITTED_BEYOND_END,)))
    verdict = Verdict(rule=COMMITTED_LOST, also=(UNCLEAN_ELECTION, *beyond), silent=silent)
    return context.truth(before, verdict, ends=ends)


def _lose_transactions(context: FaultContext) -> None:
    """Commit one transaction per batch, of which the leader alone has anything."""
    if context.run.protocol is Protocol.V2:
        _as_one_producer(context)
    else:
        _as_many_producers(context)


def _as_one_producer(context: FaultContext) -> None:
    """Let the first transaction survive: the producer is known wherever its later ones are gone."""
    run = context.run
    producer = run.producer(protocol=Protocol.V2)
    producer.begin()
    _commit(context, producer, 1)
    leave_alone(context)
    for size in context.batches(run.options.records):
        _note(context, _commit(context, producer, size))


def _as_many_producers(context: FaultContext) -> None:
    """Take a transactional id for each: with one alone its next batch would be rejected."""
    leave_alone(context)
    for number, size in enumerate(context.batches(context.run.options.records)):
        name = f"{context.run.new_name}-{number}"
        producer = context.run.producer(transactional_id=name, protocol=Protocol.V1)
        producer.begin()
        _note(context, _commit(context, producer, size))


def _note(context: FaultContext, transactions: dict[TopicPartition, LostTransaction]) -> None:
    for where, transaction in transactions.items():
        context.transactions.setdefault(where, []).append(transaction)


def _commit(
    context: FaultContext, producer: RawProducer, records: int
) -> dict[TopicPartition, LostTransaction]:
    """Commit a transaction over all partitions, and wait for its markers."""
    transactions = {}
    for where in context.partitions:
        producer.add(where)
        transactions[where] = LostTransaction(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            start_offset=producer.produce(where, records),
            records=records,
        )
    producer.end(commit=True)
    for where, transaction in transactions.items():
        context.run.await_release(where, producer, transaction.start_offset)
    return transactions
