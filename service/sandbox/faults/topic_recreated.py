"""A topic that was deleted and created again under its name: fewer records, none of them lost.

Its leader epochs begin at zero again, so that only the topic id tells it from a loss.
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
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.replicas import await_condition, await_gone
from service.sandbox.faults.rule_names import EVERY_LOSS_RULE
from service.sandbox.faults.stage import Stage
from service.sandbox.workloads.log_reading import committed_offset


def prepare_topic_recreated(stage: Stage) -> Injection:
    """Write the records of the first topic of that name."""
    context = make_context(stage)
    context.write(stage.options.records)
    if stage.options.readers:
        commit_as_reader(context)
    return partial(_inject, context)


def _inject(context: FaultContext) -> LossTruth:
    stage, before = context.stage, context.before()
    stage.admin.delete_topic(context.topic)
    await_gone(stage, context.topic)
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
    servers = context.stage.sandbox.bootstrap_servers
    for where, groups in context.groups.items():
        for made in groups:
            await_condition(  # with the topic its commits go, a little later
                lambda: committed_offset(servers, made.group, where) is None,  # noqa: B023 - awaited here
                f"{made.group} still has a commit on the deleted topic",
            )
            commit(context, where, made)
