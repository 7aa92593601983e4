"""An election that counts as unclean and loses nothing: the last known leader comes back.

Only the leader is in sync when it dies, and the other replica must not take over. Returning from a
kill, the leader is not even eligible (ELR, KIP-966); as last known leader it is elected all the same,
and the controller logs and counts an unclean election.
"""

from __future__ import annotations

from functools import partial

from service.sandbox.faults.committed_loss import leave_alone
from service.sandbox.faults.fault_context import (
    FaultContext,
    Injection,
    Verdict,
    epochs,
    make_context,
)
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.replicas import await_in_sync, await_leader, await_leaderless, revive
from service.sandbox.faults.rule_names import (
    COMMITTED_BEYOND_END,
    COMMITTED_LOST,
    UNCLEAN_ELECTION,
    UNREPLICATED_LOST,
)


def prepare_unclean_without_loss(run: FaultRun) -> Injection:
    """Let only the leader hold acknowledged records, on a topic that forbids unclean elections."""
    context = make_context(run)
    leave_alone(context)
    context.write(run.options.records)
    return partial(_inject, context)


def _inject(context: FaultContext) -> LossTruth:
    run, pair, before = context.run, context.pair, context.before()
    run.sandbox.kill(pair.leader)
    await_leaderless(run, context.partitions)
    revive(run, pair.leader)
    await_leader(run, context.partitions, [pair.leader], above=epochs(before))
    revive(run, pair.follower)
    await_in_sync(run, context.partitions, [pair.follower])
    # The same leader as before, with its own log: only the controller knows that it was unclean.
    silent = (COMMITTED_LOST, UNREPLICATED_LOST, COMMITTED_BEYOND_END, UNCLEAN_ELECTION)
    verdict = Verdict(silent=silent)
    return context.truth(before, verdict, ends="it is over: the leader is back with all it had")
