"""The active controller changes again and again.

Detects:
    More elections of an active controller within an hour than a rolling restart of the controllers
    causes. An election of the same controller counts too.

Why it matters:
    With each of them leader elections and ISR changes wait for seconds. Controllers that cannot keep
    their lead are overloaded, have slow disks or a bad network, and are about to be absent.

Inputs:
    Leader and leader epoch of the quorum (DescribeQuorum) in the rounds of the last hour, which are
    kept over a restart of Tidemark. Several elections between two rounds count as one.

Thresholds:
    6 within an hour: a rolling restart of five controllers, the active one always first, moves it
    five times.

False positives:
    Two rolling restarts of the controllers within an hour. Without DESCRIBE on the cluster, and
    before KRaft, it is UNKNOWN.

Runbook:
    `elections` lists when which controller took over. `kafka-metadata-quorum.sh describe
    --replication` shows how far each controller lags behind. Check garbage collection, disk latency
    and the network of the controllers, and `controller.quorum.election.timeout.ms` and
    `controller.quorum.fetch.timeout.ms`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.evidence import Scalar
from rules.facts.broker_memory import HISTORY, ControllerTerm
from rules.facts.brokers import ControllerState
from rules.facts.column import Column
from rules.facts.last_observation import microseconds
from rules.facts.times import MICROSECOND
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import MICROSECONDS_PER_MS, View

ELECTIONS: Final = 6
SHOWN: Final = 10  # the newest

RULE: Final = RuleMeta(
    rule_id="controller_moves_often",
    subject=SubjectKind.CLUSTER,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    summary="The active controller changed six times within an hour.",
)


class Why(Reason):
    """Reasons of this rule."""

    STEADY = "steady"
    MOVES_OFTEN = "moves_often"
    NOT_KNOWN = "not_known"  # no permission, an old release, or a controller that gives no answer


def judge(view: View) -> Judgement:
    """Judge the cluster."""
    now_us = microseconds(view.now)
    elections = view.memory.brokers.changes_since(now_us - HISTORY // MICROSECOND)
    is_often = np.array([len(elections) >= ELECTIONS])
    is_known = np.array([view.snapshot.quorum.state is ControllerState.ACTIVE])
    return decide(
        RULE,
        NamedSubjects(SubjectKind.CLUSTER, ({"cluster": view.snapshot.cluster},)),
        [
            Case(is_often, Verdict.BREACH, Why.MOVES_OFTEN),
            Case(~is_known, Verdict.UNKNOWN, Why.NOT_KNOWN),
        ],
        (Verdict.OK, Why.STEADY),
        {
            "elections_in_last_hour": Column.of([len(elections)]),
            "controller": Column.of([view.snapshot.quorum.leader]),
            "leader_epoch": Column.of([view.snapshot.quorum.leader_epoch]),
        },
        details=lambda _: {"elections": [_row(term, now_us) for term in elections[-SHOWN:]]},
    )


def _row(term: ControllerTerm, now_us: int) -> dict[str, Scalar]:
    return {
        "controller": term.leader,
        "leader_epoch": term.leader_epoch,
        "before_ms": (now_us - term.seen_us) // MICROSECONDS_PER_MS,
    }
