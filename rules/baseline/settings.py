"""The settings of baselines: every number of the method that an operator may want to change."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from rules.baseline.policy import POLICIES, Policy
from rules.baseline.series import Metric


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
