"""What the method finds in real labelled series: `python -m tests.bench.real_series FOLDER [FOLDER ...]`.

A folder holds CSV files with the columns timestamp (seconds), value and label, or folders of NumPy files:
`train.npy` and `test.npy`, each with `_timestamp` and `_label`. A blank value is a gap and remains one. Every
day is judged by the baseline run of the day before; labels are never learnt from. Only the test files count,
of a CSV file its second half.

All series have the same policy: first that of the produce rate, then one for short spikes of any size and unit
(`SPIKES`), or instead the produce rate's with other values of the fields of `rules.baseline.policy.Policy`, such
as `--policy '{"open_seconds": 0}'`.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import METRIC_CODES, BaselineBlock, DayBlock, Float32s
from rules.baseline.civil import CivilDay, civil_day
from rules.baseline.daily_step import advance
from rules.baseline.event_scores import EventScores, Span, score_events
from rules.baseline.grid import Int64s
from rules.baseline.judging import Judge, Memory
from rules.baseline.policy import POLICIES, BaselineSettings, Policy
from rules.baseline.series import Metric
from rules.baseline.state import StateBlock

DAY_MS: Final = 86_400_000
WEEK_MS: Final = 7 * DAY_MS
METRIC: Final = Metric.PRODUCE_RATE
# What differs from the produce rate's policy: one sample opens, and only the series' own scale decides.
SPIKES: Final[Mapping[str, Any]] = {
    "open_seconds": 0,
    "min_deviation": 1e-6,
    "min_relative": 0.0,
    "min_rise": None,
    "fall_share": 0.0,
    "hours_above": 32,
    "is_proportional": False,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledSeries:
    """The samples of one series, by time."""

    name: str
    at_ms: Int64s  # since 1970-01-01 UTC
    values: Float32s  # NaN: not measured
    is_labelled: NDArray[np.bool_]  # in an incident
    first_judged: int  # what is before this sample is only learnt from

    @classmethod
    def from_csv(cls, path: Path) -> Self:
        """Read a CSV file."""
        with path.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        return cls(
            name=path.stem,
            at_ms=np.array([int(row["timestamp"]) * 1000 for row in rows], np.int64),
            values=np.array([row["value"] or "nan" for row in rows]).astype(np.float32),
            is_labelled=np.array([float(row["label"] or 0) > 0 for row in rows], np.bool_),
            first_judged=len(rows) // 2,
        )

    @classmethod
    def from_arrays(cls, folder: Path) -> Self:
        """Read a folder of NumPy files."""
        halves = {
            kind: [np.load(folder / f"{half}{kind}.npy").ravel() for half in ("train", "test")]
            for kind in ("", "_timestamp", "_label")
        }
        return cls(
            name=folder.name,
            at_ms=np.concatenate(halves["_timestamp"]).astype(np.int64) * 1000,
            values=np.concatenate(halves[""]).astype(np.float32),
            is_labelled=np.concatenate(halves["_label"]) > 0,
            first_judged=len(halves[""][0]),
        )

    @property
    def step_ms(self) -> int:
        """The usual distance of samples."""
        return int(np.median(np.diff(self.at_ms)))

    @property
    def period(self) -> Span:
        """What is judged."""
        return int(self.at_ms[self.first_judged]), int(self.at_ms[-1]) + self.step_ms

    @property
    def windows(self) -> list[Span]:
        """The labelled windows."""
        edges = np.diff(self.is_labelled.astype(np.int8), prepend=0, append=0)
        begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
        return [
            (int(self.at_ms[begin]), int(self.at_ms[end]) + self.step_ms)
            for begin, end in zip(begins, ends, strict=True)
        ]

    def put_day(self, row: Float32s, start_ms: int) -> None:
        """Put the samples of the day that begins at `start_ms` on its grid, (samples of the day,)."""
        day_ms = len(row) * self.step_ms
        rows = slice(*np.searchsorted(self.at_ms, (start_ms, start_ms + day_ms)))
        row[(self.at_ms[rows] - start_ms) // self.step_ms] = self.values[rows]


def read_folder(folder: Path) -> list[LabelledSeries]:
    """Return the series of a folder.

    Raises:
        OSError, ValueError: a file is missing or holds something else, such as a pointer to where it is stored.
    """
    series = [LabelledSeries.from_csv(path) for path in sorted(folder.glob("*.csv"))]
    series += [
        LabelledSeries.from_arrays(path.parent) for path in sorted(folder.glob("*/train.npy"))
    ]
    if not series:
        raise ValueError(f"no series in {folder}")
    return series


class Replay:
    """Replays series with one step side by side, each day judged by the run of the day before.

    All are moved by whole weeks to the same first week, so that few days have many series each.
    """

    def __init__(self, series: Sequence[LabelledSeries], settings: BaselineSettings) -> None:
        self.series, self.settings = series, settings
        self.step_ms = series[0].step_ms
        firsts = [int(labelled.at_ms[0]) for labelled in series]
        self.moved_ms = [(at - min(firsts)) // WEEK_MS * WEEK_MS for at in firsts]

    def openings(self) -> list[list[int]]:
        """Return when each series opens, ms since 1970-01-01 UTC."""
        states = StateBlock.new(len(self.series))
        baselines: BaselineBlock | None = None
        memory = Memory.empty(len(self.series), self.step_ms)
        opened: list[list[int]] = [[] for _ in self.series]
        for calendar in self._days():
            block = self._block(calendar)
            if baselines is not None:
                judge = Judge.of(baselines, calendar, self.step_ms, self.settings)
                memory, openings, _ = judge.replay(memory, block)
                for opening in openings:
                    if opening.opened is not None:
                        at = calendar.start_ms + opening.opened * self.step_ms
                        opened[opening.row].append(at + self.moved_ms[opening.row])
            states, baselines = advance(states, block, calendar, self.settings)
        return opened

    def _days(self) -> Iterator[CivilDay]:
        moved = list(zip(self.series, self.moved_ms, strict=True))
        first = min(int(series.at_ms[0]) - moved_ms for series, moved_ms in moved)
        last = max(int(series.at_ms[-1]) - moved_ms for series, moved_ms in moved)
        for number in range(first // DAY_MS, last // DAY_MS + 1):
            yield civil_day(date(1970, 1, 1) + timedelta(days=number), "UTC")

    def _block(self, calendar: CivilDay) -> DayBlock:
        shape = (len(self.series), calendar.samples(self.step_ms))
        values = np.full(shape, np.nan, np.float32)
        for row, series, moved_ms in zip(values, self.series, self.moved_ms, strict=True):
            series.put_day(row, calendar.start_ms + moved_ms)
        return DayBlock(
            series_id=np.arange(len(self.series)),
            metric=np.full(len(self.series), METRIC_CODES[METRIC], np.uint8),
            step_ms=self.step_ms,
            values=values,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesScores:
    """How well the openings of one series fit its labels."""

    name: str
    events: EventScores
    weeks: float
    delays: Sequence[float]  # polls

    @classmethod
    def of(cls, series: LabelledSeries, openings: Sequence[int]) -> Self:
        """Score the openings of a series."""
        begin, end = series.period
        judged = [at for at in openings if begin <= at < end]
        events = score_events({0: judged}, {0: series.windows}, (begin, end))
        return cls(
            name=series.name,
            events=events,
            weeks=(end - begin) / WEEK_MS,
            delays=[delay / series.step_ms for delay in events.delays_ms],
        )


def score(series: Sequence[LabelledSeries], settings: BaselineSettings) -> list[SeriesScores]:
    """Replay and score series."""
    scores: list[SeriesScores] = []
    for step_ms in sorted({labelled.step_ms for labelled in series}):
        alike = [labelled for labelled in series if labelled.step_ms == step_ms]
        openings = Replay(alike, settings).openings()
        scores += [SeriesScores.of(*pair) for pair in zip(alike, openings, strict=True)]
    return scores


def pool(name: str, scores: Sequence[SeriesScores]) -> SeriesScores:
    """Return the counts of several series together."""
    counts = {
        place.name: sum(getattr(series.events, place.name) for series in scores)
        for place in fields(EventScores)
        if place.name != "delays_ms"
    }
    return SeriesScores(
        name=name,
        events=EventScores(**counts),
        weeks=sum(series.weeks for series in scores),
        delays=[delay for series in scores for delay in series.delays],
    )


HEADER: Final = (
    f"{'':<38}{'weeks':>7}{'events':>7}{'found':>7}{'false':>7}{'again':>7}"
    f"{'precision':>10}{'recall':>8}{'F1':>7}{'false/week':>11}{'polls until (median)':>21}"
)


def line(scores: SeriesScores) -> str:
    """Return scores as a line below `HEADER`."""
    events = scores.events
    ratios = (events.precision, events.recall, events.f1)
    shown = ["-" if ratio is None else f"{ratio:.3f}" for ratio in ratios]
    delay = f"{median(scores.delays):.0f}" if scores.delays else "-"
    return (
        f"{scores.name:<38}{scores.weeks:>7.1f}{events.incidents:>7}{events.found:>7}"
        f"{events.false:>7}{events.repeated:>7}{shown[0]:>10}{shown[1]:>8}{shown[2]:>7}"
        f"{events.false / scores.weeks:>11.2f}{delay:>21}"
    )


def print_scores(folder: Path, policies: Mapping[str, Policy], *, has_each: bool) -> None:
    """Print the scores of a folder's series together, and of each of them if `has_each`."""
    series = read_folder(folder)
    print(f"\n{folder.name}: {len(series)} series\n{HEADER}")
    for name, policy in policies.items():
        scores = score(series, BaselineSettings(policies={**POLICIES, METRIC: policy}))
        for row in (*(scores if has_each else ()), pool(name, scores)):
            print(line(row))


def main() -> None:
    """Print the scores of the series in each folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--policy", type=json.loads, metavar="JSON")
    parser.add_argument("--by-series", action="store_true")
    options = parser.parse_args()
    changes: dict[str, Mapping[str, Any]] = {"produce rate": {}, "short spikes": SPIKES}
    if options.policy is not None:
        changes = {"changed": options.policy}
    policies = {name: replace(POLICIES[METRIC], **values) for name, values in changes.items()}
    for folder in options.folders:
        print_scores(folder, policies, has_each=options.by_series)


if __name__ == "__main__":
    main()
