"""Counters only grow; counts of verdicts are those of the latest round."""

from __future__ import annotations

from rules.verdict import Verdict
from service.metrics.totals import SelfMetrics
from tests.factories import report, snapshot
from tests.unit.service.metrics.reading import labelled, rendered

START = SelfMetrics(version="0.1.0")


def test_counters_add_up_over_rounds() -> None:
    first = report(requests={"Metadata": 1}, setup_requests={"ApiVersions": 3}, duplicate_commits=2)
    second = report(requests={"Metadata": 1, "ListOffsets": 4}, setup_requests={})
    totals = START.after_round(first, {}).after_round(second, {})
    assert totals.requests == {"ApiVersions": 3, "ListOffsets": 4, "Metadata": 2}
    assert totals.duplicate_commits == 2


def test_verdicts_are_replaced() -> None:
    first = START.after_round(report(), {("a", Verdict.OK): 1})
    assert first.after_round(report(), {("b", Verdict.BREACH): 2}).verdicts == {
        ("b", Verdict.BREACH): 2
    }


def test_a_round_leaves_the_totals_before_it_alone() -> None:
    START.after_round(report(), {("a", Verdict.OK): 1})
    assert SelfMetrics(version="0.1.0") == START


def test_a_count_of_zero_is_told_before_anything_happened() -> None:
    found = rendered(snapshot(), totals=START)
    assert labelled(found, "tidemark_duplicate_commits_total", "cluster") == {("default",): 0.0}


def test_verdicts_are_told_by_their_names() -> None:
    counts = {("a", verdict): int(verdict) for verdict in Verdict}
    found = rendered(snapshot(), totals=START.after_round(report(), counts))
    assert labelled(found, "tidemark_verdicts", "rule", "verdict") == {
        ("a", "ok"): 0.0,
        ("a", "unknown"): 1.0,
        ("a", "breach"): 2.0,
    }
