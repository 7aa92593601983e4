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
    floor: float = 0.0  # the least value that the metric can have
    ceiling: float = float("inf")  # the greatest
    open_seconds: int  # so long every sample must be unusual; 0: one sample is enough
    drift_seconds: int = 1800  # or so long far from the profile, although it came slowly
    days_share: float = 0.5  # of 14 days' deviations, the quantile that is usual; 0.5: the median
    is_proportional: bool = False  # it scatters in proportion to its level
    min_nonzero: float = 0.0  # a smaller share of samples that are not zero: sparse, no band

    def __post_init__(self) -> None:
        if not (0 <= self.open_seconds <= _MEMORY and 0 < self.drift_seconds <= _MEMORY):
            raise ValueError("live evaluation remembers one hour: no policy may wait longer")
        if self.min_deviation <= 0:
            raise ValueError("a minimum deviation of zero would report every value")

    def cut(self, value: float | None) -> float | None:
        """Return an edge of a band, within the values that the metric can have."""
        return None if value is None else min(max(value, self.floor), self.ceiling)


_LAG: Final = 300  # deploys and rebalances make lag jump for 1 to 3 minutes
_MOST: Final = 0.85  # lag of nightly jobs differs much from day to day: the third largest of 14

POLICIES: Final[Mapping[Metric, Policy]] = MappingProxyType(
    {
        Metric.READ_COMMITTED_LAG: Policy(
            direction=Direction.ABOVE, min_deviation=1000, open_seconds=_LAG, days_share=_MOST
        ),
        Metric.READ_UNCOMMITTED_LAG: Policy(
            direction=Direction.ABOVE, min_deviation=1000, open_seconds=_LAG, days_share=_MOST
        ),
        Metric.READ_COMMITTED_LAG_SECONDS: Policy(
            direction=Direction.ABOVE, min_deviation=10, open_seconds=_LAG, days_share=_MOST
        ),
        Metric.READ_UNCOMMITTED_LAG_SECONDS: Policy(
            direction=Direction.ABOVE, min_deviation=10, open_seconds=_LAG, days_share=_MOST
        ),
        Metric.CONSUME_RATE: Policy(
            direction=Direction.BOTH,
            min_deviation=1,
            open_seconds=_LAG,
            min_nonzero=0.2,
            is_proportional=True,
        ),
        Metric.PRODUCE_RATE: Policy(
            direction=Direction.BOTH,
            min_deviation=1,
            open_seconds=180,
            min_nonzero=0.2,
            is_proportional=True,
        ),
        Metric.OPEN_SPAN: Policy(direction=Direction.ABOVE, min_deviation=1000, open_seconds=_LAG),
        Metric.UNREPLICATED_SPAN: Policy(
            direction=Direction.ABOVE, min_deviation=1000, open_seconds=120
        ),
        Metric.SEQUENCE_ERRORS: Policy(
            direction=Direction.ABOVE, min_deviation=0.1, open_seconds=60
        ),
        Metric.RECORD_ERROR_RATE: Policy(
            direction=Direction.ABOVE, min_deviation=0.1, open_seconds=60
        ),
        Metric.ABORT_RATIO: Policy(
            direction=Direction.ABOVE, min_deviation=0.05, ceiling=1.0, open_seconds=_LAG
        ),
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
    hours_above: int = 32  # of 28 days: so many hours may be beyond the threshold
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
