"""Acknowledged records that are gone: a stale replica becomes leader.

The follower is paused until the leader alone is in sync; what producers then write with acks=all is
acknowledged, and no other broker has it. The leader dies, the follower goes on without those
records and is elected all the same (`unclean.leader.election.enable`).
"""

from __future__ import annotations

from functools import partial

from rules.facts.identity import TopicPartition
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
from service.sandbox.faults.scene import (
    Before,
    Scene,
    Strike,
    Verdict,
    commit_as_reader,
    epochs,
    make_scene,
)
from service.sandbox.faults.stage import Stage
from service.sandbox.workloads.raw_producer import Protocol, RawProducer


def prepare_committed_loss(stage: Stage) -> Strike:
    """Let only the leader hold acknowledged records."""
    scene = make_scene(stage, is_unclean=True)
    if stage.options.transactional:
        _lose_transactions(scene)
    else:
        leave_alone(scene)
        scene.write(stage.options.records)
    if stage.options.readers:
        commit_as_reader(scene)
    return partial(_strike, scene)


def leave_alone(scene: Scene) -> None:
    """Pause the follower, and wait until nobody but the leader is in sync.

    That takes seconds, and so the follower's last fetch is answered, which the leader keeps for
    `replica.fetch.wait.max.ms` (500 ms): it carries nothing of what is written afterwards.
    """
    freeze_follower(scene.stage, scene.pair, scene.partitions)
    await_alone(scene.stage, scene.pair, scene.partitions)


def elect_stale(scene: Scene, noted: Before | None = None) -> Before:
    """Kill the leader and let the follower take over as it is; return what was before.

    `noted` is what was before, where the caller has observed already.
    """
    stage, pair, before = scene.stage, scene.pair, noted or scene.before()
    stage.sandbox.kill(pair.leader)  # first: a follower that goes on earlier would catch up
    revive(stage, pair.follower)
    if scene.is_unclean and not stage.sandbox.state.release.elects_unclean:
        ask_for_unclean(stage.cluster, scene.partitions)
    await_leader(stage, scene.partitions, [pair.follower], above=epochs(before))
    return before


def _strike(scene: Scene) -> LossTruth:
    before = elect_stale(scene)
    ends = "never: the records are on the old leader's disk until it comes back and truncates"
    if scene.stage.options.old_leader_returns:
        revive(scene.stage, scene.pair.leader)
        await_in_sync(scene.stage, scene.partitions, [scene.pair.leader])
        ends = "never: the old leader has come back and truncated its log"
    beyond = (COMMITTED_BEYOND_END,) if scene.groups else ()
    silent = (UNREPLICATED_LOST, *(() if scene.groups else (COMMITTED_BEYOND_END,)))
    verdict = Verdict(rule=COMMITTED_LOST, also=(UNCLEAN_ELECTION, *beyond), silent=silent)
    return scene.truth(before, verdict, ends=ends)


def _lose_transactions(scene: Scene) -> None:
    """Commit one transaction per batch, of which the leader alone has anything."""
    if scene.stage.protocol is Protocol.V2:
        _as_one_producer(scene)
    else:
        _as_many_producers(scene)


def _as_one_producer(scene: Scene) -> None:
    """Let the first transaction survive: the producer is known wherever its later ones are gone."""
    stage = scene.stage
    producer = stage.producer(protocol=Protocol.V2)
    producer.begin()
    _commit(scene, producer, 1)
    leave_alone(scene)
    for size in scene.batches(stage.options.records):
        _note(scene, _commit(scene, producer, size))


def _as_many_producers(scene: Scene) -> None:
    """Take a transactional id for each: with one alone its next batch would be rejected."""
    leave_alone(scene)
    for number, size in enumerate(scene.batches(scene.stage.options.records)):
        name = f"{scene.stage.new_name}-{number}"
        producer = scene.stage.producer(transactional_id=name, protocol=Protocol.V1)
        producer.begin()
        _note(scene, _commit(scene, producer, size))


def _note(scene: Scene, made: dict[TopicPartition, LostTransaction]) -> None:
    for where, transaction in made.items():
        scene.transactions.setdefault(where, []).append(transaction)


def _commit(
    scene: Scene, producer: RawProducer, records: int
) -> dict[TopicPartition, LostTransaction]:
    """Commit a transaction over all partitions, and wait for its markers."""
    made = {}
    for where in scene.partitions:
        producer.add(where)
        made[where] = LostTransaction(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            start_offset=producer.produce(where, records),
            records=records,
        )
    producer.end(commit=True)
    for where, transaction in made.items():
        scene.stage.await_release(where, producer, transaction.start_offset)
    return made
