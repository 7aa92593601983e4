"""What the method finds in simulated weeks, by class of incident, and what it tells for nothing.

Every day is judged by the baselines of the night before; the first two weeks are only learnt from.
QUALITY_SEEDS, QUALITY_SERIES and QUALITY_SHOWN choose other weeks, and how many false openings are
listed; QUALITY_HARD=0 leaves out slow degradation, bursts, retry blips and holidays.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from datetime import date, timedelta

from rules.baseline.civil import civil_day
from rules.baseline.policy import BaselineSettings
from service.sandbox.simulator.occasions import INCIDENTS, Kind
from service.sandbox.simulator.simulation import Simulation, SimulationRequest
from tests.bench.quality import CLOCKS, Verdicts, f1, replayed, shown

SEEDS = [int(seed) for seed in os.environ.get("QUALITY_SEEDS", "1,2,3").split(",")]
SERIES = int(os.environ.get("QUALITY_SERIES", "300"))
SHOWN = int(os.environ.get("QUALITY_SHOWN", "0"))
HARD = os.environ.get("QUALITY_HARD", "1") == "1"
ORDINARY = (
    Kind.DEPLOY,
    Kind.REBALANCE,
    Kind.LEVEL_SHIFT,
    Kind.BURST,
    Kind.RETRY_BLIP,
    Kind.HOLIDAY,
)
WEEKS, LEARNT_WEEKS = 8, 2
END = date(2026, 11, 15)  # clocks are changed on October 25 in Berlin, on November 1 in New York


def verdicts(seed: int) -> Verdicts:
    request = SimulationRequest(seed=seed, series=SERIES, weeks=WEEKS, end=END, has_hard_cases=HARD)
    simulation = Simulation(request)
    told = list(replayed(simulation, BaselineSettings()))
    first = simulation.request.days[0] + timedelta(weeks=LEARNT_WEEKS)
    return Verdicts(simulation, told, civil_day(first, simulation.request.zones[0]).start_ms)


def test_what_is_found_and_what_is_told_for_nothing() -> None:
    begin = time.process_time()
    judged = [verdicts(seed) for seed in SEEDS]
    seconds = time.process_time() - begin
    series_weeks = len(SEEDS) * SERIES * (WEEKS - LEARNT_WEEKS)
    print(f"\n{len(SEEDS)} x {SERIES} series, {series_weeks} series-weeks judged, {seconds:.0f} s")
    _print_found(judged)
    _print_ordinary(judged)
    _print_false(judged, series_weeks)
    assert any(one.reported for one in judged)


def _print_found(judged: list[Verdicts]) -> None:
    print(
        f"\n{'incident':<20}{'cases':>6}{'found':>7}{'share':>8}{'was open':>10}{'minutes until (median)':>25}"
    )
    for kind in INCIDENTS:
        cases = [one for verdict in judged for one in verdict.of(kind)]
        found = sorted(one.delay_minutes for one in cases if one.reported)
        share = f"{len(found) / len(cases):.2f}" if cases else "-"
        middle = f"{found[len(found) // 2]:.0f}" if found else "-"
        was_open = sum(one.was_open for one in cases)
        print(f"{kind.value:<20}{len(cases):>6}{len(found):>7}{share:>8}{was_open:>10}{middle:>25}")
    counts = judged[0].counts()
    for verdict in judged[1:]:
        counts += verdict.counts()
    print(f"{'all':<20}{counts.incidents:>6}{counts.found:>7}{counts.recall:>8.2f}")
    for title, precision in (
        ("openings of series", counts.precision),
        ("notifications of pipelines", counts.grouped_precision),
    ):
        score = f1(precision, counts.recall)
        print(f"event F1 by {title}: {score:.3f} (precision {precision:.3f})")


def _print_ordinary(judged: list[Verdicts]) -> None:
    print(f"\n{'ordinary':<20}{'cases':>6}{'opened':>7}{'share':>8}")
    for kind in ORDINARY:
        cases = [one for verdict in judged for one in verdict.of(kind)]
        opened = sum(bool(one.reported) for one in cases)
        share = f"{opened / len(cases):.2f}" if cases else "-"
        print(f"{kind.value:<20}{len(cases):>6}{opened:>7}{share:>8}")


def _print_false(judged: list[Verdicts], series_weeks: int) -> None:
    false = [why for verdict in judged for why in verdict.false.values()]
    groups = sum(verdict.false_groups() for verdict in judged)
    weeks = sum(len(verdict.simulation.pipelines) for verdict in judged) * (WEEKS - LEARNT_WEEKS)
    print(
        f"\nfalse openings: {len(false)}, {len(false) / series_weeks:.4f} per series-week; "
        f"grouped by pipeline {groups}, {groups / weeks:.3f} per pipeline-week"
    )
    hours = sorted(told.hours for verdict in judged for told in verdict.false)
    if hours:
        at = [hours[int(share * (len(hours) - 1))] for share in (0.5, 0.9, 1)]
        print(f"  hours until over: median {at[0]:.1f}, 90 % {at[1]:.1f}, most {at[2]:.1f}")
    print(f"  within a day of a change of clocks: {false.count(CLOCKS)}")
    print("  by what was there:")
    for why, count in Counter(false).most_common():
        print(f"    {why:<28}{count:>6}{count / series_weeks:>10.4f} per series-week")
    print("  by metric:")
    by_metric = sum((verdict.false_by_metric() for verdict in judged), Counter())
    for metric, count in by_metric.most_common():
        print(f"    {metric.value:<32}{count:>6}")
    for verdict in judged:
        for told, why in list(verdict.false.items())[:SHOWN]:
            print(f"  {why:<28} {shown(told, verdict.simulation.pipelines)}")
        missed = [one for one in verdict.found if one.occasion.is_incident and not one.reported]
        for one in missed[:SHOWN]:
            print(f"  missed                       {one.occasion}")
