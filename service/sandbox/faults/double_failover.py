"""Two leader changes in a row; the first one loses records, the second one is clean.

The old leader comes back, truncates, and is elected again as the preferred replica: whoever observes
only now finds the leader that was there before, in another epoch. With `records=0` the stale
replica lacks nothing, and nothing is lost.
"""

from __future__ import annotations

from functools import partial

from service.sandbox.faults.committed_loss import elect_stale, leave_alone
from service.sandbox.faults.fault_context import FaultContext, Injection, Verdict, make_context
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.replicas import await_in_sync, await_leader, revive
from service.sandbox.faults.rule_names import (
    COMMITTED_BEYOND_END,
    COMMITTED_LOST,
    UNREPLICATED_LOST,
)
from service.sandbox.workloads.log_requests import elect_preferred


def prepare_double_failover(run: FaultRun) -> Injection:
    """Let only the leader hold acknowledged records, if any."""
    context = make_context(run, is_unclean=True)
    leave_alone(context)
    context.write(run.options.records)
    return partial(_inject, context)


def _inject(context: FaultContext) -> LossTruth:
    run, pair = context.run, context.pair
    before = elect_stale(context)
    between = [partition.leader_epoch for partition in run.cluster.topic(context.topic)]
    revive(run, pair.leader)
    await_in_sync(run, context.partitions, [pair.leader])
    elect_preferred(run.cluster, context.partitions)
    await_leader(run, context.partitions, [pair.leader], above=between)
    silent = (UNREPLICATED_LOST, COMMITTED_BEYOND_END)
    if run.options.records:
        verdict = Verdict(rule=COMMITTED_LOST, silent=silent)
    else:  # the unclean election is to be seen only between the two changes
        verdict = Verdict(silent=(COMMITTED_LOST, *silent))
    return context.truth(before, verdict, ends="it is over: the old leader leads again")
