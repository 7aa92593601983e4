"""Records that a leader took alone (acks=1) and that are gone after a clean election.

While fewer replicas are in sync than `min.insync.replicas`, the high watermark does not move, and the
replica that fell behind stays eligible for leadership (ELR, KIP-966): it has all that was committed.
So the leader may die at any time, and the election is clean. A follower that still counts as in
sync would lead to the same, but does so for `replica.lag.time.max.ms` only.
"""

from __future__ import annotations

from functools import partial

from service.sandbox.faults.committed_loss import elect_stale, leave_alone
from service.sandbox.faults.fault_context import FaultContext, Injection, Verdict, make_context
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.replicas import await_in_sync, revive
from service.sandbox.faults.rule_names import EVERY_LOSS_RULE, UNREPLICATED_LOST
from service.sandbox.workloads.raw_producer import LEADER_ALONE


def prepare_unreplicated_loss(run: FaultRun) -> Injection:
    """Let only the leader hold records, above a high watermark that does not move."""
    context = make_context(run, min_isr=2)
    leave_alone(context)
    context.write(run.options.records, acks=LEADER_ALONE)
    return partial(_inject, context)


def _inject(context: FaultContext) -> LossTruth:
    before = elect_stale(context)
    if context.run.options.old_leader_returns:
        revive(context.run, context.pair.leader)
        await_in_sync(context.run, context.partitions, [context.pair.leader])
    silent = tuple(rule for rule in EVERY_LOSS_RULE if rule != UNREPLICATED_LOST)
    verdict = Verdict(rule=UNREPLICATED_LOST, silent=silent)
    return context.truth(before, verdict, ends="never: nobody but the old leader had the records")
