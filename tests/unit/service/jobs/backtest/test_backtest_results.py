"""What a backtest adds up, and which openings only one of two settings has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date

from rules.baseline.replaying import BacktestOpening
from service.jobs.backtest.results import Collected, DamagedDay, only_in

OPENING = BacktestOpening(
    series_id=7,
    metric="produce_rate",
    opened_ms=1000,
    closed_ms=2000,
    worst_ms=1500,
    score=5,
    value=0,
    expected=100,
    least=80,
    most=120,
    profile="daily",
    days=14,
)
LATER = replace(OPENING, opened_ms=5000, closed_ms=None)


def event(
    bucket: int, setting: int, *openings: BacktestOpening, earlier: Sequence[BacktestOpening] = ()
) -> dict[str, object]:
    return {
        "event": "replayed",
        "bucket": bucket,
        "setting": setting,
        "openings": [asdict(opening) for opening in openings],
        "earlier": [asdict(opening) for opening in earlier],
        "totals": {"produce_rate": {"series": 2, "series_days": 14}},
        "damaged": {"2026-01-05": "torn"},
    }


def test_buckets_are_added_up_for_each_setting() -> None:
    collected = Collected()
    for replayed in (event(0, 0, LATER), event(1, 0, OPENING), event(0, 1), event(1, 1)):
        collected.add(replayed)
    now = collected.result(0, (), {}, (0, 9000))
    [totals] = now.metrics
    assert (totals.openings, totals.series, totals.series_days) == (2, 4, 28)
    assert totals.per_series_week == 0.5
    assert list(now.openings) == [OPENING, LATER]
    assert now.scores is None, "without labels nothing is said of precision"
    changed = collected.result(1, ("k_min=4",), {7: [(900, 1200)]}, (0, 9000))
    assert changed.scores is not None
    assert (changed.total.openings, changed.scores.recall) == (0, 0)
    torn = {DamagedDay(day=date(2026, 1, 5), bucket=bucket, why="torn") for bucket in (0, 1)}
    assert collected.damaged == torn


def test_openings_of_a_series_that_overlap_are_the_same() -> None:
    collected = Collected()
    collected.add(event(0, 0, OPENING, LATER))
    collected.add(
        event(0, 1, replace(OPENING, opened_ms=1900, closed_ms=3000), replace(LATER, series_id=8))
    )
    now, changed = (collected.result(setting, (), {}, (0, 9000)) for setting in (0, 1))
    assert only_in(now, changed) == [LATER]
    assert [opening.series_id for opening in only_in(changed, now)] == [8]


def test_what_was_open_already_is_not_only_in_the_other() -> None:
    collected = Collected()
    collected.add(event(0, 0, earlier=[replace(OPENING, opened_ms=-500)]))
    collected.add(event(0, 1, OPENING))
    now, changed = (collected.result(setting, (), {}, (0, 9000)) for setting in (0, 1))
    assert now.total.openings == 0
    assert only_in(changed, now) == []
