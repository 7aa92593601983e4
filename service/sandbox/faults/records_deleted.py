"""Records that somebody deleted (DeleteRecords): the log begins later, and nothing is lost."""

from __future__ import annotations

from functools import partial

from rules.errors import SandboxError
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.rule_names import EVERY_LOSS_RULE
from service.sandbox.faults.scene import Scene, Strike, Verdict, make_scene
from service.sandbox.faults.stage import Stage
from service.sandbox.workloads.log_requests import delete_before


def prepare_records_deleted(stage: Stage) -> Strike:
    """Write the records of which half will go."""
    scene = make_scene(stage)
    scene.write(stage.options.records)
    return partial(_strike, scene)


def _strike(scene: Scene) -> LossTruth:
    before = scene.before()
    middles = [state.high_watermark // 2 for state in before.states]
    for where, middle in zip(scene.partitions, middles, strict=True):
        delete_before(scene.stage.cluster, where, middle)
    truth = scene.truth(
        before, Verdict(silent=EVERY_LOSS_RULE), ends="it is over: the logs begin in their middle"
    )
    if [one.after.log_start_offset for one in truth.partitions] != middles:
        raise SandboxError(f"the logs of {scene.topic} do not begin where they were cut")
    return truth
