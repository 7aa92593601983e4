"""A topic that was deleted and created again under its name: fewer records, none of them lost.

Its leader epochs begin at zero again, so that only the topic id distinguishes it from a loss.
"""

from __future__ import annotations

from functools import partial

from rules.errors import SandboxError
from service.sandbox.faults.fault_context import (
    KEPT,
    FaultContext,
    Injection,
    Verdict,
    commit,
    commit_as_reader,
    create_topic,
    make_context,
)
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.replicas import await_condition, await_gone
from service.sandbox.faults.rule_names import EVERY_LOSS_RULE
from service.sandbox.workloads.log_reading import committed_offset


def prepare_topic_recreated(run: FaultRun) -> Injection:
    """Write the records of the first topic of that name."""
    context = make_context(run)
    context.write(run.options.records)
    if run.options.readers:
        commit_as_reader(context)
    return partial(_inject, context)


def _inject(context: FaultContext) -> LossTruth:
    run, before = context.run, context.before()
    run.admin.delete_topic(context.topic)
    await_gone(run, context.topic)
    create_topic(context)
    context.write(KEPT)
    _commit_again(context)
    truth = context.truth(
        before,
        Verdict(silent=EVERY_LOSS_RULE),
        ends="it is over: another topic has the name now",
    )
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
