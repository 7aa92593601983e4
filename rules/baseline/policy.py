"""The settings of baselines: every number of the method that an operator may want to change.

Among them what counts as unusual for each metric, and how long it must last before it is reported.

A deviation below `min_deviation` or below `min_relative` of the expected value is never reported: both enter
the scale, so that the score cannot pass the threshold with less.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rules.baseline.series import Metric


class Direction(StrEnum):
    """On which side of the band a value is reported."""

    ABOVE = "above"
    BELOW = "below"
    BOTH = "both"


_MEMORY: Final = 3600  # seconds that live evaluation remembers


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How deviations of a metric are judged."""

    direction: Direction
    min_deviation: float  # in the metric's unit
    min_relative: float = 0.2  # of what is expected
    min_rise: float | None = None  # the same above what is expected; None: as below
    floor: float = 0.0  # the least value that the metric can have
    ceiling: float = float("inf")  # the greatest
    open_seconds: int  # so long every sample must be unusual; 0: one sample is enough
    drift_seconds: int = 1800  # or so long far from the profile, although it came slowly; 0: never
    hours_above: int = 32  # of 28 days: so many hours may be beyond the threshold
    fall_share: float = 0.0  # below this share of what is expected it is always reported
    is_backlog: bool = False  # it opens only while it does not fall: what falls is worked off
    days_share: float = 0.5  # of 14 days' deviations, the quantile that is usual; 0.5: the median
    is_proportional: bool = False  # it scatters in proportion to its level
    min_nonzero: float = 0.0  # a smaller share of samples that are not zero: sparse, no band

    def __post_init__(self) -> None:
        if not (0 <= self.open_seconds <= _MEMORY and 0 <= self.drift_seconds <= _MEMORY):
            raise ValueError("live evaluation remembers one hour: no policy may wait longer")
        if self.min_deviation <= 0:
            raise ValueError("a minimum deviation of zero would report every value")

    def cut(self, value: float | None) -> float | None:
        """Return an edge of a band, within the values that the metric can have."""
        return None if value is None else min(max(value, self.floor), self.ceiling)


_WAIT: Final = 300  # deploys, rebalances, bursts and retries make a series jump for 1 to 3 minutes
_MOST: Final = 0.85  # lag of nightly jobs differs much from day to day: the third largest of 14
_HOURS: Final = 16  # lag and rates: they inform a person, who reads no more than one in two days


def _lag(min_deviation: float) -> Policy:
    return Policy(
        direction=Direction.ABOVE,
        min_deviation=min_deviation,
        open_seconds=_WAIT,
        days_share=_MOST,
        hours_above=_HOURS,
        is_backlog=True,
    )


def _rate(direction: Direction, fall_share: float) -> Policy:
    """Return the policy of a rate: half of the usual, or clearly more than twice, is worth a look.

    It drifts without harm: with growth, on a holiday, after a change of level.
    """
    return Policy(
        direction=direction,
        min_deviation=1,
        min_relative=0.5,
        min_rise=1.2,
        open_seconds=_WAIT,
        drift_seconds=0,
        hours_above=_HOURS,
        fall_share=fall_share,
        min_nonzero=0.2,
        is_proportional=True,
    )


def _above(min_deviation: float, open_seconds: int, ceiling: float = float("inf")) -> Policy:
    return Policy(
        direction=Direction.ABOVE,
        min_deviation=min_deviation,
        open_seconds=open_seconds,
        ceiling=ceiling,
    )


POLICIES: Final[Mapping[Metric, Policy]] = MappingProxyType(
    {
        Metric.READ_COMMITTED_LAG: _lag(1000),
        Metric.READ_UNCOMMITTED_LAG: _lag(1000),
        Metric.READ_COMMITTED_LAG_SECONDS: _lag(10),
        Metric.READ_UNCOMMITTED_LAG_SECONDS: _lag(10),
        # Who reads more than usual is catching up, or more is written, which has a rate of its own.
        Metric.CONSUME_RATE: _rate(Direction.BELOW, fall_share=0.0),
        Metric.PRODUCE_RATE: _rate(Direction.BOTH, fall_share=0.1),
        Metric.OPEN_SPAN: _above(1000, _WAIT),
        Metric.UNREPLICATED_SPAN: _above(1000, 120),
        Metric.SEQUENCE_ERRORS: _above(0.1, 60),
        Metric.RECORD_ERROR_RATE: _above(0.1, _WAIT),
        Metric.ABORT_RATIO: _above(0.05, _WAIT, ceiling=1.0),
        Metric.CLIENT_RECORD_ERROR_RATE: _above(0.1, _WAIT),
        Metric.CLIENT_RECORD_RETRY_RATE: _above(0.1, _WAIT),
    }
)


# Of a metric that this version does not know: nothing is cut, both sides count.
_UNKNOWN: Final = Policy(
    direction=Direction.BOTH, min_deviation=1.0, floor=float("-inf"), open_seconds=60
)


def policy_of(metric: str) -> Policy:
    """Return the policy of a metric by its name in history."""
    try:
        return POLICIES[Metric(metric)]
    except (KeyError, ValueError):
        return _UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSettings:
    """The numbers of the method; lengths of what is remembered belong to the state's format."""

    k_min: float = 3.0  # the least threshold, in usual deviations
    drifts_above: int = 4  # of 28 days: so many quarters of a day may drift beyond the threshold
    cap_margin: float = 1.1
    cap_limit: float = 4.0  # times k_min: a month of outage raises the threshold no further
    relative_floor: float = 0.05  # the least scale, of what is expected
    change_mads: float = 3.0  # a new level is so many deviations of daily medians away
    vanished_days: int = 7  # without data: no band any more
    policies: Mapping[Metric, Policy] = field(default_factory=lambda: POLICIES)

    def text(self) -> str:
        """Return all settings as one line of JSON, the same for the same settings: for a run's id."""
        shown: dict[str, object] = {
            place.name: getattr(self, place.name)
            for place in dataclasses.fields(self)
            if place.name != "policies"
        }
        shown["policies"] = {
            metric.value: dataclasses.asdict(policy) for metric, policy in self.policies.items()
        }
        return json.dumps(shown, sort_keys=True, separators=(",", ":"))
