"""Two leader changes in a row; the first one loses records, the second one is clean.

The old leader comes back, truncates, and is elected again as the preferred replica: whoever observations
only now finds the leader that was there before, in another epoch. With `records=0` the stale
replica lacks nothing, and nothing is lost.
"""

from __future__ import annotations

from functools import partial

from service.sandbox.faults.committed_loss import elect_stale, leave_alone
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.replicas import await_in_sync, await_leader, revive
from service.sandbox.faults.rule_names import (
    COMMITTED_BEYOND_END,
    COMMITTED_LOST,
    UNREPLICATED_LOST,
)
from service.sandbox.faults.scene import Scene, Strike, Verdict, make_scene
from service.sandbox.faults.stage import Stage
from service.sandbox.workloads.log_requests import elect_preferred


def prepare_double_failover(stage: Stage) -> Strike:
    """Let only the leader hold acknowledged records, if any."""
    scene = make_scene(stage, is_unclean=True)
    leave_alone(scene)
    scene.write(stage.options.records)
    return partial(_strike, scene)


def _strike(scene: Scene) -> LossTruth:
    stage, pair = scene.stage, scene.pair
    before = elect_stale(scene)
    between = [one.leader_epoch for one in stage.cluster.topic(scene.topic)]
    revive(stage, pair.leader)
    await_in_sync(stage, scene.partitions, [pair.leader])
    elect_preferred(stage.cluster, scene.partitions)
    await_leader(stage, scene.partitions, [pair.leader], above=between)
    silent = (UNREPLICATED_LOST, COMMITTED_BEYOND_END)
    if stage.options.records:
        verdict = Verdict(rule=COMMITTED_LOST, silent=silent)
    else:  # the unclean election is to be seen only between the two changes
        verdict = Verdict(silent=(COMMITTED_LOST, *silent))
    return scene.truth(before, verdict, ends="it is over: the old leader leads again")
