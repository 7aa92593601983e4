"""Records that somebody deleted (DeleteRecords): the log begins later, and nothing is lost."""

from __future__ import annotations

from functools import partial

from rules.errors import SandboxError
from service.sandbox.faults.fault_context import FaultContext, Injection, Verdict, make_context
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.rule_names import EVERY_LOSS_RULE
from service.sandbox.workloads.log_requests import delete_before


def prepare_records_deleted(run: FaultRun) -> Injection:
    """Write the records of which half will go."""
    context = make_context(run)
    context.write(run.options.records)
    return partial(_inject, context)


def _inject(context: FaultContext) -> LossTruth:
    before = context.before()
    middles = [state.high_watermark // 2 for state in before.states]
    for where, middle in zip(context.partitions, middles, strict=True):
        delete_before(context.run.cluster, where, middle)
    truth = context.truth(
        before, Verdict(silent=EVERY_LOSS_RULE), ends="it is over: the logs begin in their middle"
    )
    if [partition.after.log_start_offset for partition in truth.partitions] != middles:
        raise SandboxError(f"the logs of {context.topic} do not begin where they were cut")
    return truth
