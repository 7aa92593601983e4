"""Two producers of one partition are rejected at once: one has lost records, the other one has not.

A stale replica became leader, which cost the first producer what it had acknowledged. The second one
begins only then, and its batches come in another order.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.faults.committed_loss import elect_stale, leave_alone
from service.sandbox.faults.scene import Scene, make_scene
from service.sandbox.faults.sequence_check import Expected
from service.sandbox.faults.sequence_loss import LOST, NEXT, REPLICATED, TOLD, return_leader
from service.sandbox.faults.sequence_names import GAP_REORDERING, Client
from service.sandbox.faults.sequence_scene import (
    SequenceStrike,
    episode_of,
    sequence_truth,
    write_all,
)
from service.sandbox.faults.sequence_truth import SequenceEpisode, SequenceTruth
from service.sandbox.faults.sequence_writer import TRIES, RawWriter
from service.sandbox.faults.stage import Stage
from service.sandbox.workloads.sequenced_producer import SequencedProducer, new_producer


def prepare_two_producers(stage: Stage) -> SequenceStrike:
    """Let only the leader hold the last acknowledged records of the first producer."""
    scene = make_scene(stage, is_unclean=True)
    loser = RawWriter.begun(scene)
    write_all(scene, loser, REPLICATED)
    leave_alone(scene)
    write_all(scene, loser, stage.options.records)
    return partial(_strike, scene, loser)


def _strike(scene: Scene, loser: RawWriter) -> SequenceTruth:
    stage, where, batch = scene.stage, scene.partitions[0], scene.stage.options.batch
    before = elect_stale(scene)
    other = new_producer(stage.cluster, stage.new_name)
    other.send(where, 0, batch)
    other.expect_rejection(where, 2 * batch, batch)
    loser.be_rejected(NEXT)
    other.expect_rejection(where, 3 * batch, batch)
    for number in (1, 2, 3):
        other.send(where, number * batch, batch)
    ends = return_leader(scene)
    loss = scene.truth(before, LOST, ends=ends)
    episodes = [_lost(scene, loser), _reordered(scene, other)]
    also = (*TOLD.also, GAP_REORDERING)
    silent = tuple(rule for rule in TOLD.silent if rule != GAP_REORDERING)
    told = replace(TOLD, also=also, silent=silent, ends=ends)
    return sequence_truth(scene, told, episodes, loss=loss, told_application=True)


def _lost(scene: Scene, loser: RawWriter) -> SequenceEpisode:
    expected = Expected(
        sequence_class=SequenceClass.LOSS,
        client=Client.RAW,
        producer_epoch=0,
        rejected=(REPLICATED + scene.stage.options.records,) * TRIES,
        current_sequence=REPLICATED - 1,
        is_healed=False,
    )
    return episode_of(scene, scene.partitions[0], loser.producer.producer_id, expected)


def _reordered(scene: Scene, other: SequencedProducer) -> SequenceEpisode:
    batch = scene.stage.options.batch
    expected = Expected(
        sequence_class=SequenceClass.REORDERING,
        client=Client.RAW,
        producer_epoch=0,
        rejected=(2 * batch, 3 * batch),
        current_sequence=batch - 1,
        is_healed=True,
    )
    return episode_of(scene, scene.partitions[0], other.producer_id, expected)
