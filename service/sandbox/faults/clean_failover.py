"""A leader that dies while producers write with acks=all: nothing acknowledged is lost."""

from __future__ import annotations

from functools import partial

from rules.errors import SandboxError
from service.sandbox.faults.fault_context import (
    KEPT,
    FaultContext,
    Injection,
    Verdict,
    epochs,
    make_context,
)
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.replicas import (
    await_condition,
    await_in_sync,
    await_leader,
    revive,
)
from service.sandbox.faults.rule_names import EVERY_LOSS_RULE, UNREPLICATED_LOST
from service.sandbox.workloads.producer import IdempotentProducer


def prepare_clean_failover(run: FaultRun) -> Injection:
    """Begin a load, and wait until the brokers have acknowledged some of it."""
    context = make_context(run, min_isr=2, has_bystander=True)
    load = IdempotentProducer(run.sandbox.bootstrap_servers, topic=context.topic)
    run.undo.callback(load.stop)
    load.start()
    _await_more(load, run.options.records)
    return partial(_inject, context, load)


def _inject(context: FaultContext, load: IdempotentProducer) -> LossTruth:
    run, pair, before = context.run, context.pair, context.before()
    run.sandbox.kill(pair.leader)
    others = [broker for broker in run.cluster.running() if broker != pair.leader]
    await_leader(run, context.partitions, others, above=epochs(before))
    _await_more(load, run.options.records)
    load.stop()
    if run.options.old_leader_returns:
        revive(run, pair.leader)
        await_in_sync(run, context.partitions, [pair.leader])
    # What was written and not replicated at the last observation may be gone: it was not acknowledged.
    silent = tuple(rule for rule in EVERY_LOSS_RULE if rule != UNREPLICATED_LOST)
    truth = context.truth(before, Verdict(silent=silent), ends="it is over: another broker leads")
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
