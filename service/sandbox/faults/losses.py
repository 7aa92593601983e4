"""Faults about lost records: what a topic is like before each of them, and how it happens.

Two brokers have the topic, a leader and a follower. Where acknowledged records are to be lost, the
follower is paused until the leader alone is in sync: what producers then write with acks=all is
acknowledged, and no other broker has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rules.errors import SandboxError
from rules.facts.identity import TopicPartition
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.faults.fault_context import (
    KEPT,
    Before,
    FaultContext,
    Injection,
    Verdict,
    commit,
    commit_as_reader,
    create_topic,
    epochs,
    make_context,
)
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.loss_truth import LossTruth, LostTransaction
from service.sandbox.faults.replicas import (
    ask_for_unclean,
    await_alone,
    await_gone,
    await_in_sync,
    await_leader,
    await_leaderless,
    freeze_follower,
    revive,
)
from service.sandbox.faults.rule_names import (
    CLEAN_CHANGE_RULES,
    COMMITTED_BEYOND_END,
    COMMITTED_LOST,
    EVERY_LOSS_RULE,
    UNCLEAN_ELECTION,
    UNREPLICATED_LOST,
)
from service.sandbox.workloads.log_reading import committed_offset
from service.sandbox.workloads.log_requests import delete_before, elect_preferred
from service.sandbox.workloads.producer import IdempotentProducer
from service.sandbox.workloads.raw_producer import (
    ALL_IN_SYNC,
    LEADER_ALONE,
    Protocol,
    RawProducer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossFault:
    """A fault about losses: what its topic is like before it, and how it happens."""

    inject: Callable[[FaultContext], LossTruth]
    is_unclean: bool = False  # whether a replica that is not in sync may lead
    min_isr: int = 1
    is_alone: bool = False  # whether the leader alone is in sync when the records are written
    acks: int = ALL_IN_SYNC

    def prepare(self, run: FaultRun) -> Injection:
        """Write the records, and let readers have read them where the options say so."""
        context = make_context(run, is_unclean=self.is_unclean, min_isr=self.min_isr)
        if run.options.transactional:
            _lose_transactions(context)
        else:
            if self.is_alone:
                leave_alone(context)
            context.write(run.options.records, acks=self.acks)
        if run.options.readers:
            commit_as_reader(context)
        return partial(self.inject, context)


def leave_alone(context: FaultContext) -> None:
    """Pause the follower, and wait until nobody but the leader is in sync.

    That takes seconds, and so the follower's last fetch is answered, which the leader keeps for
    `replica.fetch.wait.max.ms` (500 ms): it carries nothing of what is written afterwards.
    """
    freeze_follower(context.run, context.pair, context.partitions)
    await_alone(context.run, context.pair, context.partitions)


def elect_stale(context: FaultContext, noted: Before | None = None) -> Before:
    """Kill the leader and let the follower take over as it is; return what was before.

    It goes on without the records that only the leader had, and is elected all the same
    (`unclean.leader.election.enable`). `noted` is what was before, where the caller has observed
    already.
    """
    run, pair, before = context.run, context.pair, noted or context.before()
    run.sandbox.kill(pair.leader)  # first: a follower that goes on earlier would catch up
    revive(run, pair.follower)
    if context.is_unclean and not run.sandbox.state.release.elects_unclean:
        ask_for_unclean(run.cluster, context.partitions)
    await_leader(run, context.partitions, [pair.follower], above=epochs(before))
    return before


def fail_over(context: FaultContext, before: Before) -> None:
    """Kill the leader and wait until another broker leads."""
    run, leader = context.run, context.pair.leader
    run.sandbox.kill(leader)
    others = [broker for broker in run.cluster.running() if broker != leader]
    await_leader(run, context.partitions, others, above=epochs(before))


def return_leader(context: FaultContext) -> str:
    """Bring the old leader back, if the caller wants it; return when a loss is over."""
    if not context.run.options.old_leader_returns:
        return "never: the records are on the old leader's disk until it comes back and truncates"
    revive(context.run, context.pair.leader)
    await_in_sync(context.run, context.partitions, [context.pair.leader])
    return "never: the old leader has come back and truncated its log"


def _lose_committed(context: FaultContext) -> LossTruth:
    """Let a stale replica become leader: acknowledged records are gone."""
    before = elect_stale(context)
    ends = return_leader(context)
    beyond = (COMMITTED_BEYOND_END,)
    also, silent = (beyond, ()) if context.groups else ((), beyond)
    return context.truth(
        before,
        Verdict(
            rule=COMMITTED_LOST,
            also=(UNCLEAN_ELECTION, *also),
            silent=(UNREPLICATED_LOST, *silent),
            ends=ends,
        ),
    )


def _lose_unreplicated(context: FaultContext) -> LossTruth:
    """Lose what a leader took alone (acks=1), by a clean election.

    While fewer replicas are in sync than `min.insync.replicas`, the high watermark does not move, and
    the replica that fell behind stays eligible for leadership (ELR, KIP-966): it has all that was
    committed. So the leader may die at any time, and the election is clean. A follower that still
    counts as in sync would lead to the same, but does so for `replica.lag.time.max.ms` only.
    """
    before = elect_stale(context)
    return_leader(context)
    ends = "never: nobody but the old leader had the records"
    return context.truth(
        before, Verdict(rule=UNREPLICATED_LOST, silent=CLEAN_CHANGE_RULES, ends=ends)
    )


def _change_twice(context: FaultContext) -> LossTruth:
    """Change the leader twice in a row; the first change loses records, the second one is clean.

    The old leader comes back, truncates, and is elected again as the preferred replica: whoever
    observes only now finds the leader that was there before, in another epoch. With `records=0` the
    stale replica lacks nothing, and nothing is lost.
    """
    run, pair = context.run, context.pair
    before = elect_stale(context)
    between = [partition.leader_epoch for partition in run.cluster.topic(context.topic)]
    revive(run, pair.leader)
    await_in_sync(run, context.partitions, [pair.leader])
    elect_preferred(run.cluster, context.partitions)
    await_leader(run, context.partitions, [pair.leader], above=between)
    silent, ends = (
        (UNREPLICATED_LOST, COMMITTED_BEYOND_END),
        "it is over: the old leader leads again",
    )
    if run.options.records:
        return context.truth(before, Verdict(rule=COMMITTED_LOST, silent=silent, ends=ends))
    # The unclean election is to be seen only between the two changes.
    return context.truth(before, Verdict(silent=(COMMITTED_LOST, *silent), ends=ends))


def _bring_last_leader_back(context: FaultContext) -> LossTruth:
    """Elect the last known leader, which counts as unclean and loses nothing.

    Only the leader is in sync when it dies, and the other replica must not take over. Returning from
    a kill, the leader is not even eligible (ELR, KIP-966); as last known leader it is elected all
    the same, and the controller logs and counts an unclean election.
    """
    run, pair, before = context.run, context.pair, context.before()
    run.sandbox.kill(pair.leader)
    await_leaderless(run, context.partitions)
    revive(run, pair.leader)
    await_leader(run, context.partitions, [pair.leader], above=epochs(before))
    revive(run, pair.follower)
    await_in_sync(run, context.partitions, [pair.follower])
    # The same leader as before, with its own log: only the controller knows that it was unclean.
    silent = (COMMITTED_LOST, UNREPLICATED_LOST, COMMITTED_BEYOND_END, UNCLEAN_ELECTION)
    ends = "it is over: the leader is back with all it had"
    return context.truth(before, Verdict(silent=silent, ends=ends))


def _recreate(context: FaultContext) -> LossTruth:
    """Delete the topic and create it again under its name: fewer records, none of them lost.

    Its leader epochs begin at zero again, so that only the topic id distinguishes it from a loss.
    """
    run, before = context.run, context.before()
    run.admin.delete_topic(context.topic)
    await_gone(run, context.topic)
    create_topic(context)
    context.write(KEPT)
    _commit_again(context)
    ends = "it is over: another topic has the name now"
    truth = context.truth(before, Verdict(silent=EVERY_LOSS_RULE, ends=ends))
    if truth.new_topic_id == truth.topic_id:
        raise SandboxError(f"topic {context.topic} was not created again")
    return truth


def _commit_again(context: FaultContext) -> None:
    """Commit the old positions once more, as a member that lives through it may."""
    servers = context.run.sandbox.bootstrap_servers
    for where, groups in context.groups.items():
        for group_truth in groups:
            await_condition(  # with the topic its commits go, a little later
                lambda: committed_offset(servers, group_truth.group, where) is None,  # noqa: B023 - awaited here
                f"{group_truth.group} still has a commit on the deleted topic",
            )
            commit(context, where, group_truth)


def _delete_half(context: FaultContext) -> LossTruth:
    """Delete records on purpose (DeleteRecords): the log begins later, and nothing is lost."""
    before = context.before()
    middles = [state.high_watermark // 2 for state in before.states]
    for where, middle in zip(context.partitions, middles, strict=True):
        delete_before(context.run.cluster, where, middle)
    ends = "it is over: the logs begin in their middle"
    truth = context.truth(before, Verdict(silent=EVERY_LOSS_RULE, ends=ends))
    if [partition.after.log_start_offset for partition in truth.partitions] != middles:
        raise SandboxError(f"the logs of {context.topic} do not begin where they were cut")
    return truth


COMMITTED_LOSS = LossFault(inject=_lose_committed, is_unclean=True, is_alone=True)
UNREPLICATED_LOSS = LossFault(
    inject=_lose_unreplicated, min_isr=2, is_alone=True, acks=LEADER_ALONE
)
UNCLEAN_WITHOUT_LOSS = LossFault(inject=_bring_last_leader_back, is_alone=True)
DOUBLE_FAILOVER = LossFault(inject=_change_twice, is_unclean=True, is_alone=True)
TOPIC_RECREATED = LossFault(inject=_recreate)
RECORDS_DELETED = LossFault(inject=_delete_half)


def prepare_clean_failover(run: FaultRun) -> Injection:
    """Begin a load, and wait until the brokers have acknowledged some of it."""
    context = make_context(run, min_isr=2, has_bystander=True)
    load = IdempotentProducer(run.sandbox.bootstrap_servers, topic=context.topic)
    run.undo.callback(load.stop)
    load.start()
    _await_more(load, run.options.records)
    return partial(_fail_over_under_load, context, load)


def _fail_over_under_load(context: FaultContext, load: IdempotentProducer) -> LossTruth:
    before = context.before()
    fail_over(context, before)
    _await_more(load, context.run.options.records)
    load.stop()
    return_leader(context)
    ends = "it is over: another broker leads"
    truth = context.truth(before, Verdict(silent=CLEAN_CHANGE_RULES, ends=ends))
    _require_all(context, load)
    return truth


def _await_more(load: IdempotentProducer, records: int) -> None:
    target = load.counts.acknowledged + records
    await_condition(
        lambda: load.counts.acknowledged >= target, f"{load.label} is not acknowledged any more"
    )


def _require_all(context: FaultContext, load: IdempotentProducer) -> None:
    """Read everything; each acknowledged record has to be there, and is, if none failed, once."""
    counts = load.counts
    if counts.acknowledged != counts.sent:
        raise SandboxError(f"{load.label} lost {counts.failed} records: {counts.last_error}")
    numbers = [int(value) for records in context.read() for value in records.values()]
    sent_before = [number for _ in context.partitions for number in range(KEPT)]
    if sorted(numbers) != sorted([*sent_before, *range(counts.sent)]):
        raise SandboxError(f"{context.topic} does not hold what was acknowledged, each record once")


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
