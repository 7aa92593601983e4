"""Settings of the cluster on which exactly-once depends are wrong.

Detects:
    Settings of topics, brokers, transactional ids and features with which exactly-once cannot hold, by the
    checks of posture. One finding per check, however many topics or brokers it concerns.

Why it matters:
    Nothing is lost yet. These settings decide whether the next failure of a broker, restart of a producer or
    pause of a group loses records or has them processed twice.

Inputs:
    Settings with their sources (DescribeConfigs of topics and brokers), feature levels (ApiVersions),
    placement, timeouts of transactional ids, lags of groups; on which topics transactions were seen.

Thresholds:
    Those of each check, in its page below docs/posture/. 10 minutes: a rolling restart with a new value is
    over by then.

False positives:
    A topic whose records may be lost: on which no transaction was seen it is only information. A setting that
    is chosen on purpose: silence the check of this cluster.

Runbook:
    `tidemark posture --check CHECK` lists what is wrong, with the command that sets it; `command` is that of
    the first one. `names` are the first few.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import Evidence
from rules.facts.column import Column
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.posture.all_checks import judge_posture
from rules.posture.line import PostureJudgement, Unseen
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

NAMES: Final = 5


class Why(Reason):
    """Reasons of this rule."""

    RIGHT = "right"
    WRONG = "wrong"
    COULD_BE_SAFER = "could_be_safer"  # nothing shows that exactly-once depends on it
    NOT_KNOWN = "not_known"  # settings could not be read
    NOT_IN_RELEASE = "not_in_release"  # the brokers' release has no such setting


RULE: Final = RuleMeta(
    rule_id="exactly_once_posture",
    subject=SubjectKind.CHECK,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    for_=timedelta(minutes=10),
    summary="Settings of the cluster on which exactly-once depends are wrong.",
    milder=((Why.COULD_BE_SAFER, Severity.INFO),),
    undecided=(Why.NOT_IN_RELEASE,),
)


def judge(view: View) -> Judgement:
    """Judge every check that sees anything; what only clients know is listed and not judged."""
    judgements = [j for j in judge_posture(view).judgements if j.is_visible]
    cluster = view.snapshot.cluster
    labels = tuple({"cluster": cluster, "check": j.check.check_id} for j in judgements)
    wrong, unknown, right = (
        np.array([j.count(verdict) for j in judgements], np.int64)
        for verdict in (Verdict.BREACH, Verdict.UNKNOWN, Verdict.OK)
    )
    is_serious = np.array([j.is_serious for j in judgements], np.bool_)
    is_old = np.array([_is_of_release(j) for j in judgements], np.bool_)
    return decide(
        RULE,
        NamedSubjects(SubjectKind.CHECK, labels),
        [
            Case(is_serious, Verdict.BREACH, Why.WRONG),
            Case(wrong > 0, Verdict.BREACH, Why.COULD_BE_SAFER),
            Case((unknown > 0) & is_old, Verdict.UNKNOWN, Why.NOT_IN_RELEASE),
            Case(unknown > 0, Verdict.UNKNOWN, Why.NOT_KNOWN),
        ],
        (Verdict.OK, Why.RIGHT),
        {
            "wrong": Column.known(wrong),
            "unknown": Column.known(unknown),
            "right": Column.known(right),
        },
        details=lambda position: _details(judgements[position]),
    )


def count_settings(judgements: Sequence[Judgement]) -> dict[tuple[str, str], int]:
    """Return how many settings each check found right, wrong and unknown, by check and word."""
    return {
        (judgement.subjects.labels(position)["check"], word): int(column.values[position])
        for judgement in judgements
        if judgement.rule is RULE
        for word, column in judgement.evidence.items()
        for position in range(len(judgement.subjects))
    }


def _is_of_release(judgement: PostureJudgement) -> bool:
    """Whether nothing but the release of the brokers hides a setting."""
    reasons = {line.reason for line in judgement.lines(Verdict.UNKNOWN)}
    return reasons <= {Unseen.NOT_IN_RELEASE}


def _details(judgement: PostureJudgement) -> Evidence:
    """Return the first few names, and what follows for the first of them."""
    positions = judgement.positions(Verdict.BREACH) or judgement.positions(Verdict.UNKNOWN)
    if not positions:
        return {"page": judgement.check.page}
    line = judgement.line(positions[0])
    names = dict.fromkeys(judgement.names[position] for position in positions[: 2 * NAMES])
    return {
        "setting": line.setting,
        "value": line.value,
        "names": ", ".join(list(names)[:NAMES]),
        "consequence": line.consequence,
        "command": line.fix,
        "page": judgement.check.page,
    }
