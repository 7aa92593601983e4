"""Says of an open series what is measured, what is usual, how far it is out, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from rules.baseline.blocks import PROFILES, Profile
from rules.baseline.learnt_series import LearntSeries
from rules.baseline.live_series import StepVerdict
from rules.baseline.policy import Direction, policy_of
from rules.baseline.scores import HOUR_MS
from rules.baseline.series import Series
from rules.baseline.unusual_values import UnusualValues
from rules.baseline.wording import TIMES, TO, digits, half_hour, learnt_from, with_unit
from rules.evidence import Scalar
from rules.facts.times import EPOCH

SHOWN: Final = 10  # series in one finding
MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRow:
    """An open series as of the last step; values in the metric's unit."""

    series: Series
    at_ms: int
    zone: str
    opened_ms: int
    is_slow: bool
    is_new: bool  # the hour before is known
    value: float | None  # None: not measured
    least: float | None  # the usual range; None: nothing is learnt of this half hour
    most: float | None
    score: float | None  # in usual deviations
    is_above: bool
    profile: Profile
    days: int

    @property
    def name(self) -> str:
        """Return topic and partition, as far as it has them."""
        topic, partition = self.series.topic or "", self.series.partition
        return topic if partition is None else f"{topic}-{partition}"

    def to_evidence(self) -> dict[str, Scalar]:
        """Return it as evidence: numbers with their unit."""
        labels: dict[str, Scalar] = {
            "group": self.series.group,
            "topic": self.series.topic,
            "partition": self.series.partition,
        }
        metric = self.series.metric.value
        return {
            **{name: value for name, value in labels.items() if value is not None},
            "value": None if self.value is None else with_unit(digits(self.value), metric),
            "usual": self.usual,
            "usual_deviations": None if self.score is None else digits(self.score),
            "opened_at": _time(self.opened_ms).isoformat(timespec="seconds"),
        }

    @property
    def usual(self) -> str | None:
        """Return the usual range; None where it is not known."""
        if self.least is None or self.most is None:
            return None
        metric = self.series.metric.value
        return f"{digits(self.least)}{TO}{with_unit(digits(self.most), metric)}"


def row_of(
    unusual: UnusualValues, step: StepVerdict, learnt: LearntSeries, row: int, place: int
) -> OpenRow:
    """Return an open series by its row of the run and its place in `unusual.open`."""
    judge = step.day.judge
    sample = (step.start_ms - judge.calendar.start_ms) // judge.step_ms
    expected = judge.take(np.array([row], np.int64)).expected_at(sample)
    series = learnt.series(row)
    policy = policy_of(series.metric)
    return OpenRow(
        series=series,
        at_ms=step.start_ms,
        zone=learnt.zone,
        opened_ms=int(unusual.open.opened_ms[place]),
        is_slow=bool(unusual.open.is_slow[place]),
        is_new=_known(step.verdict.scores.score[row, 0]) is not None,
        value=_known(step.values[row]),
        least=policy.cut(_known(expected.lower[0, 0])),
        most=policy.cut(_known(expected.upper[0, 0])),
        score=_known(step.verdict.scores.seasonal[row, 0]),
        # Where only one side opens, that side did, wherever the value is by now.
        is_above=policy.direction is Direction.ABOVE
        or not step.verdict.scores.residual[row, 0] < 0,
        profile=PROFILES[learnt.profile[row]],
        days=int(learnt.days[row]),
    )


def explain(noun: str, row: OpenRow, others: int) -> str:
    """Return one sentence on an open series, and how many more there are."""
    metric = row.series.metric.value
    value = "not measured" if row.value is None else with_unit(digits(row.value), metric)
    parts = [f"{noun} of {row.name} {value}"]
    if row.usual is not None:
        weekday, begins, ends = half_hour(_time(row.at_ms), row.zone)
        slot = (
            f"{weekday} {begins}{TO}{ends}"
            if row.profile is Profile.WEEKLY
            else f"{begins}{TO}{ends}"
        )
        parts.append(f"usual for {slot} is {row.usual} ({learnt_from(row.days)})")
    if row.score is not None:
        parts.append(f"{digits(row.score)} {TIMES} the usual deviation")
    parts.append(_since(row))
    if others:
        parts.append(f"{others:,} more series")
    return "; ".join(parts)


def explain_many(subjects: int, kind: str, first: str) -> str:
    """Return one sentence on what opened together."""
    return f"{subjects:,} {kind if subjects != 1 else kind[:-1]} became unusual together; the first: {first}"


def _since(row: OpenRow) -> str:
    """Return how it became unusual, or for how long it has been."""
    open_ms = row.at_ms - row.opened_ms
    if open_ms >= HOUR_MS or not row.is_new:
        return f"so for {_duration(open_ms)}"
    if row.is_slow:
        return "moved away slowly"
    return f"{'rose' if row.is_above else 'fell'} within the last hour"


def _duration(span_ms: int) -> str:
    minutes = span_ms // MINUTE_MS
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def _time(at_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=at_ms)


def _known(value: np.float32) -> float | None:
    return None if np.isnan(value) else float(value)
