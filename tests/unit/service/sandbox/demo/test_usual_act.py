"""What the last act reads of its baseline runs, and how it reports what is usual."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from rules.baseline.series import Metric
from service.runtime import clock
from service.sandbox.demo.simulated_runs import SLOT_MINUTES, ZONES, SimulatedRuns
from service.sandbox.demo.usual_act import SHOWN, fired, line_of, shown_of
from service.sandbox.simulator.occasions import Kind, Occasion


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> SimulatedRuns:
    simulated = SimulatedRuns(tmp_path_factory.mktemp("demo"))
    simulated.simulate("demo", weeks=1)
    return simulated


def row_of(runs: SimulatedRuns, **usual: Any) -> dict[str, Any]:
    assert runs.simulation is not None
    series = next(
        candidate for candidate in runs.simulation.series if candidate.metric is Metric.PRODUCE_RATE
    )
    return {
        "series_id": str(series.series_id),
        "metric": series.metric.value,
        "topic": series.topic,
        "partition": series.partition,
        "group": None,
        "days": 7,
        "usual": {
            "weekday": None,
            "begins": "14:00",
            "ends": "14:30",
            "least": 0.0,
            "most": 1e9,
            "unusual_below": None,
            "unusual_above": 2e9,
            **usual,
        },
    }


def noon(runs: SimulatedRuns) -> datetime:
    assert runs.simulation is not None
    day = runs.simulation.request.end
    return datetime(day.year, day.month, day.day, 12, tzinfo=ZoneInfo(ZONES[0])).astimezone(UTC)


def test_weeks_are_those_of_the_demos_cluster_up_to_yesterday(runs: SimulatedRuns) -> None:
    assert runs.simulation is not None
    assert {series.cluster for series in runs.simulation.series} == {"demo"}
    today = clock.utc_now().astimezone(ZoneInfo(ZONES[0])).date()
    assert runs.simulation.request.end in (today - timedelta(days=1), today - timedelta(days=2))


def test_samples_of_a_half_hour_are_those_of_all_days_or_of_a_weekday(
    runs: SimulatedRuns,
) -> None:
    series = int(row_of(runs)["series_id"])
    every, weekly = (runs.samples_at(series, noon(runs), every_day=all_) for all_ in (True, False))
    per_day = SLOT_MINUTES * 2
    assert per_day < len(every) <= 7 * per_day  # an outage may have hidden some
    assert len(weekly) <= per_day
    assert set(weekly.tolist()) <= set(every.tolist())


@pytest.mark.parametrize(
    ("usual", "expected"),
    [
        ({}, "100% of what was seen in this half hour of those days is within"),
        ({"least": 1e9}, "0% of what was seen in this half hour of those days is within"),
        ({"weekday": "Monday"}, "100% of what was seen in this half hour of Mondays is within"),
    ],
)
def test_a_line_says_what_is_usual_and_how_often_it_was_so(
    runs: SimulatedRuns, usual: dict[str, Any], expected: str
) -> None:
    at = noon(runs)
    samples = runs.samples_at(int(row_of(runs)["series_id"]), at, every_day=True)
    assert np.isfinite(samples).all()
    line = line_of(runs, row_of(runs, **usual), at)
    assert line.startswith("produce_rate of orders-1-0: usual for ")
    assert expected in line


def test_a_line_says_why_days_of_an_older_level_are_not_within(runs: SimulatedRuns) -> None:
    row = row_of(runs) | {"level_change": {"at": "2026-11-16T15:00:00Z"}}
    line = line_of(runs, row, noon(runs))
    assert line.endswith(" is within; its level is new since 2026-11-16")


def of_topic(topic: str, **row: Any) -> list[dict[str, Any]]:
    return [{"metric": metric, "topic": topic, "usual": {}, **row} for metric in SHOWN]


def test_a_topic_is_shown_whose_level_has_not_just_moved() -> None:
    usual, moved = {"usual": {"least": 0}}, {"level_change": {"at": "2026-11-16T15:00:00Z"}}
    unknown, new = of_topic("unknown"), of_topic("new", **usual, **moved)
    half, settled = of_topic("half", **usual)[:1], of_topic("old", **usual, level_change=None)
    assert shown_of([*unknown, *new, *half, *settled]) == settled
    assert shown_of([*unknown, *new, *half]) == new
    assert shown_of([*unknown, *half]) is None


def test_events_are_read_among_other_lines(tmp_path: Path) -> None:
    runs = SimulatedRuns(tmp_path)
    assert runs.list_events("baseline_run") == []
    log = ["WARN of Java", json.dumps({"event": "baseline_run", "day": "d"}), "7", '{"event": "nig']
    (tmp_path / "nightly.log").write_text("\n".join(log), encoding="utf-8")
    assert runs.list_events("baseline_run") == [{"event": "baseline_run", "day": "d"}]


def test_only_what_fired_in_a_simulated_incident_is_told() -> None:
    incident = Occasion(
        kind=Kind.ERROR_STEP,
        start_ms=1_795_175_023_366,
        end_ms=1_795_177_745_880,
        pipeline=0,
        partition=None,
        strength=0.02,
        pauses=(),
    )
    opening = {"topic": "orders-1", "explanation": "5.73 records/s; usual is 0", "opened_at": ""}
    told = {
        at: fired({**opening, "opened_at": at}, [incident])
        for at in ("2026-11-20T11:48:30Z", "2026-11-20T14:00:00Z")
    }
    line = "2026-11-20 11:48:30 UTC on orders-1: 5.73 records/s; usual is 0"
    assert list(told.values()) == [f"{line} (simulated incident: error_step)", None]
