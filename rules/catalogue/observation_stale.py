"""A critical rule has not been able to judge for a while.

Detects:
    Critical rules that have answered UNKNOWN for some subject in every round of the last minutes,
    or that had no round at all.

Why it matters:
    While we cannot see, records may be lost unnoticed. Our own blindness is told like a breach.

Inputs:
    The judgements of all critical rules, and since when each has been UNKNOWN without a break.

Thresholds:
    5 minutes: longer than a rolling restart of one broker, shorter than what an outage may hide.

False positives:
    A missing permission: it is blindness too, and the gaps of a round name it.

Runbook:
    `tidemark collect --once` prints what cannot be seen and why: a broker that is down, a permission,
    a broker that is too old. `unknown_subjects` says how much is dark.
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
    for_=timedelta(0),
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

    A time after `now` is pulled back to it: the clock was set back while nobody watched.
    """
    timestamp = microseconds(now)
    return {
        judgement.rule.rule_id: min(before.get(judgement.rule.rule_id, timestamp), timestamp)
        for judgement in judgements
        if judgement.rule.is_critical and judgement.count(Verdict.UNKNOWN)
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
    unknown = np.array([j.count(Verdict.UNKNOWN) for j in critical], np.int64)
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
