"""A critical rule has not been able to judge for a while.

Detects:
    Critical rules that have been UNKNOWN for at least one subject in every round of the last
    minutes, or that had no round at all. What was observed and does not decide is no blindness.

Why it matters:
    While Tidemark cannot observe the cluster, records may be lost unnoticed. This is alerted on
    like a breach.

Inputs:
    The judgements of all critical rules, and since when each of them has been UNKNOWN without
    interruption.

Thresholds:
    5 minutes: longer than the rolling restart of one broker, shorter than an outage may go
    unnoticed.

False positives:
    A missing permission of Tidemark: the rule cannot judge then either. The gaps of a round name
    the permission.

Runbook:
    `tidemark collect --once` prints what cannot be observed and why: a broker that is down, a
    missing permission, or a broker that is too old. `unknown_subjects` is the number of subjects
    that the rule cannot judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from rules.facts.column import Column
from rules.facts.last_observation import microseconds
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict

STALE: Final = timedelta(minutes=5)
MICROSECONDS_PER_MS: Final = 1000

RULE: Final = RuleMeta(
    rule_id="observation_stale",
    subject=SubjectKind.RULE,
    kind=Kind.STATE,
    severity=Severity.CRITICAL,
    summary="A critical rule has not been able to judge for five minutes.",
)

UnknownSince = Mapping[str, int]  # rule id -> microseconds since 1970-01-01 UTC


class Why(Reason):
    """Reasons of this rule."""

    SEES = "sees"
    BLIND_SINCE_SHORT = "blind_since_short"
    BLIND = "blind"


def advance(before: UnknownSince, judgements: Sequence[Judgement], now: datetime) -> dict[str, int]:
    """Return since when each critical rule has been UNKNOWN for some subject, without a break.

    A time after `now` is set to `now`: the clock was set back in between.
    """
    timestamp = microseconds(now)
    return {
        judgement.rule.rule_id: min(before.get(judgement.rule.rule_id, timestamp), timestamp)
        for judgement in judgements
        if judgement.rule.is_critical and judgement.count_blind()
    }


def judge(
    cluster: str, judgements: Sequence[Judgement], since: UnknownSince, now: datetime
) -> Judgement:
    """Judge the visibility of every critical rule; `since` is what `advance` returned."""
    critical = [judgement for judgement in judgements if judgement.rule.is_critical]
    began = Column.of(since.get(judgement.rule.rule_id) for judgement in critical)
    blind_ms = Column((microseconds(now) - began.values) // MICROSECONDS_PER_MS, began.valid)
    is_stale = blind_ms.valid & (blind_ms.values >= STALE / timedelta(milliseconds=1))
    labels = tuple({"cluster": cluster, "rule": j.rule.rule_id} for j in critical)
    unknown = np.array([j.count_blind() for j in critical], np.int64)
    return decide(
        RULE,
        NamedSubjects(SubjectKind.RULE, labels),
        [
            Case(is_stale, Verdict.BREACH, Why.BLIND),
            Case(began.valid, Verdict.OK, Why.BLIND_SINCE_SHORT),
        ],
        (Verdict.OK, Why.SEES),
        {"unknown_subjects": Column.known(unknown), "unknown_for_ms": blind_ms},
    )
