"""The cluster has no active controller.

Detects:
    A quorum of controllers without a leader, or one that brokers do not reach: they answer
    everything else, and leave the request that only the active controller can answer unanswered.

Why it matters:
    Reading and writing goes on, and nothing else does: no partition gets another leader when a
    broker fails, no ISR shrinks or grows (so that a high watermark stops with the first replica that
    fails), no topic, setting or producer id block is given out. The next failure stops the pipeline.

Inputs:
    DescribeQuorum, which brokers pass on to the active controller; up to three of them are queried
    before it counts as absent. The controller id of other answers is a random broker's in KRaft. Since
    when there has been none is kept from round to round and over a restart of Tidemark.

Thresholds:
    2 minutes: an election takes seconds, the restart of a cluster's only controller up to a minute.
    An absence begins anew where no round observed it for more than 2 minutes: because Tidemark did
    not run, could not reach the cluster, or could not query the controller. With rounds further
    apart than that (`service.interval_seconds`) it is never reported.

False positives:
    A network that separates all of the queried brokers from the controllers while other brokers
    reach them. Without DESCRIBE on the cluster, and before KRaft, it is UNKNOWN.

Runbook:
    Check that a majority of the controllers runs, and the end of their controller.log.
    `kafka-metadata-quorum.sh --bootstrap-controller HOST:PORT describe --status` asks a controller
    itself. Two of three are down: start one again as it was. All run: their network, their disks,
    and whether they agree on `controller.quorum.voters`. Restart no broker meanwhile: without a
    controller it cannot register again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.brokers import ControllerState
from rules.facts.column import Column
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

ABSENT_AFTER: Final = timedelta(minutes=2)  # not below `LONGEST_UNSEEN`: see there

RULE: Final = RuleMeta(
    rule_id="controller_absent",
    subject=SubjectKind.CLUSTER,
    kind=Kind.STATE,
    severity=Severity.CRITICAL,
    summary="The cluster has no active controller.",
)


class Why(Reason):
    """Reasons of this rule."""

    ACTIVE = "active"
    ABSENT_BRIEFLY = "absent_briefly"
    NO_LEADER = "no_leader"  # the quorum answers that it has none
    NO_ANSWER = "no_answer"  # brokers answer, and reach no active controller
    NOT_KNOWN = "not_known"  # no permission, an old release, or a round without time


def judge(view: View) -> Judgement:
    """Judge the cluster."""
    state, terms = view.snapshot.quorum.state, view.memory.brokers.terms
    since = Column.of([view.memory.brokers.no_controller_us])
    lasts = view.is_unchanged_for(since, ABSENT_AFTER)
    return decide(
        RULE,
        NamedSubjects(SubjectKind.CLUSTER, ({"cluster": view.snapshot.cluster},)),
        [
            Case(_holds(state is ControllerState.NOT_KNOWN), Verdict.UNKNOWN, Why.NOT_KNOWN),
            Case(_holds(state is ControllerState.ACTIVE), Verdict.OK, Why.ACTIVE),
            Case(~lasts, Verdict.OK, Why.ABSENT_BRIEFLY),
            Case(_holds(state is ControllerState.NO_LEADER), Verdict.BREACH, Why.NO_LEADER),
        ],
        (Verdict.BREACH, Why.NO_ANSWER),
        {
            "absent_ms": view.unchanged_ms(since),
            "last_controller": Column.of([terms[-1].leader if terms else None]),
            "last_leader_epoch": Column.of([terms[-1].leader_epoch if terms else None]),
        },
    )


def _holds(condition: bool) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:  # noqa: FBT001 - of the only subject
    return np.array([condition], np.bool_)
