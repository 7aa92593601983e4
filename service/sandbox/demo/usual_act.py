"""The last act: baseline runs learn from simulated weeks; Tidemark reports what is usual now, and what was not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from collectors.naming import counted
from rules.baseline.series import Metric
from service.cli.backtest.showing import summary
from service.cli.baselines import words
from service.runtime import clock
from service.sandbox.demo.act import Act, Observation, Step
from service.sandbox.demo.api import Api, Row
from service.sandbox.demo.simulated_runs import SERIES, WEEKS, SimulatedRuns
from service.sandbox.demo.stage import Stage
from service.sandbox.simulator.occasions import Occasion

SHOWN: Final = (Metric.READ_COMMITTED_LAG_SECONDS.value, Metric.PRODUCE_RATE.value)


def _is_made(observed: Observation) -> str | None:
    runs = observed.stage.baseline_runs
    simulation, written = runs.simulation, runs.written
    if simulation is None or written is None:
        return None
    days = simulation.request.days
    incidents = sum(occasion.is_incident for occasion in simulation.occasions)
    return (
        f"{written.samples / 1e6:.1f} million samples, {days[0]} to {days[-1]}, "
        f"{written.bytes / 1e6:.1f} MB of Parquet, with {counted(incidents, 'incident')} in them"
    )


def _is_learnt(observed: Observation) -> str | None:
    published = observed.stage.baseline_runs.list_events("published")
    runs = [
        run for run in observed.stage.baseline_runs.list_events("baseline_run") if run["is_new"]
    ]
    if not published or not runs:
        return None
    return (
        f"{counted(len(runs), 'baseline run')} of {runs[-1]['series']} series, each from the one "
        f"before; run {published[-1]['run']} is in PostgreSQL"
    )


def _is_usual(observed: Observation) -> str | None:
    now = clock.utc_now()
    with Api(observed.stage.address) as api:
        rows = api.rows("baselines/series", partition=0, at=now.isoformat()) or ()
    shown = shown_of(rows)
    if shown is None:
        return None
    return "\n        ".join(line_of(observed.stage.baseline_runs, row, now) for row in shown)


def _has_fired(observed: Observation) -> str | None:
    runs = observed.stage.baseline_runs
    answer = runs.backtest
    if answer is None or runs.simulation is None:
        return None
    (result,) = answer["results"]
    incidents = [occasion for occasion in runs.simulation.occasions if occasion.is_incident]
    lines = list(filter(None, (fired(opening, incidents) for opening in result["openings"])))
    if not lines:
        return None
    command = f"tidemark backtest {' '.join(runs.backtest_options)}: {'; '.join(summary(result))}"
    return "\n        ".join([command, *lines])


def fired(opening: Row, incidents: Sequence[Occasion]) -> str | None:
    """Say what would have fired in a simulated incident; None: it was in none."""
    opened = datetime.fromisoformat(opening["opened_at"])
    opened_ms = round(opened.timestamp() * 1000)
    kinds = [each.kind.value for each in incidents if each.start_ms <= opened_ms <= each.end_ms]
    if not kinds:
        return None
    return (
        f"{opened:%Y-%m-%d %H:%M:%S} UTC on {opening['topic']}: {opening['explanation']} "
        f"(simulated incident: {', '.join(kinds)})"
    )


def shown_of(rows: Sequence[Row]) -> list[Row] | None:
    """Return both series of one topic; None: there is none. One whose level has just moved comes last."""
    by_topic: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["usual"] and row["metric"] in SHOWN:
            by_topic.setdefault(row["topic"], {}).setdefault(row["metric"], row)
    whole = [[of[metric] for metric in SHOWN] for of in by_topic.values() if len(of) == len(SHOWN)]
    return min(
        whole, key=lambda shown: sum(bool(row.get("level_change")) for row in shown), default=None
    )


def line_of(runs: SimulatedRuns, row: Row, now: datetime) -> str:
    """Say what is usual, and how often that was so at this time of day."""
    usual, metric = row["usual"], row["metric"]
    every_day = usual["weekday"] is None
    samples = runs.samples_at(int(row["series_id"]), now, every_day=every_day)
    inside = (samples >= usual["least"]) & (samples <= usual["most"])
    change = row.get("level_change")
    moved = f"; its level is new since {change['at'][:10]}" if change else ""
    whose = f" read by {row['group']}" if row["group"] else ""
    return (
        f"{metric} of {row['topic']}-{row['partition']}{whose}: {words.sentence(row)}; unusual is "
        f"{words.beyond(usual, metric)}\n          "
        f"{inside.mean():.0%} of what was seen in this half hour of "
        f"{'those days' if every_day else usual['weekday'] + 's'} is within{moved}"
    )


USUAL: Final = Act(
    title="What is usual",
    steps=[
        Step(
            did=f"{WEEKS} weeks of {SERIES} series were made up, as if the cluster had been watched",
            do=Stage.simulate_weeks,
            seen=_is_made,
            limit_seconds=60,
        ),
        Step(
            did="a nightly run learnt from them, day by day, on Spark",
            do=Stage.start_runs,
            seen=_is_learnt,
            limit_seconds=450,
        ),
        Step(
            did="Tidemark was queried for what is usual at this time of the week",
            seen=_is_usual,
            limit_seconds=30,
        ),
        Step(
            did="the last of these days were replayed, to see what would have fired",
            do=Stage.start_backtest,
            seen=_has_fired,
            limit_seconds=300,
        ),
    ],
)
