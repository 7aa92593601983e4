"""Other settings for a backtest: what is changed, and what is said of a wrong name or value."""

from __future__ import annotations

import dataclasses

import pytest

from rules.baseline.overriding import override_settings
from rules.baseline.policy import BaselineSettings, Direction
from rules.baseline.series import Metric

SETTINGS = BaselineSettings()


def test_numbers_of_the_method_and_of_a_metric_are_changed_and_nothing_else() -> None:
    changes = [
        "k_min=4",
        "read_committed_lag.open_seconds=600",
        "produce_rate.direction=below",
        "produce_rate.is_backlog=true",
        "produce_rate.min_rise=none",
    ]
    changed = override_settings(SETTINGS, changes)
    assert changed.k_min == 4
    lag = changed.policies[Metric.READ_COMMITTED_LAG]
    assert lag == dataclasses.replace(
        SETTINGS.policies[Metric.READ_COMMITTED_LAG], open_seconds=600
    )
    rate = changed.policies[Metric.PRODUCE_RATE]
    assert (rate.direction, rate.is_backlog, rate.min_rise) == (Direction.BELOW, True, None)
    others = set(Metric) - {Metric.READ_COMMITTED_LAG, Metric.PRODUCE_RATE}
    assert all(changed.policies[metric] == SETTINGS.policies[metric] for metric in others)
    assert override_settings(SETTINGS, []) == SETTINGS


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("threshold=4", "did you mean k_min"),
        ("kmin=4", "did you mean k_min"),
        ("policies=1", "there are k_min, drifts_above"),
        ("open_seconds=60", "one metric: write read_committed_lag.open_seconds=VALUE"),
        ("produce_rate.k_min=4", "the whole method: write k_min=VALUE"),
        ("read_commited_lag.open_seconds=60", "did you mean read_committed_lag"),
        ("produce_rate.open_second=60", "did you mean open_seconds"),
        ("k_min", "is not NAME=VALUE"),
        ("k_min=high", "a number is needed"),
        ("k_min=0", "above 0"),
        ("k_min=nan", "a number from 0 to"),
        ("k_min=inf", "a number from 0 to 1,000,000,000"),
        ("vanished_days=" + "9" * 400, "a number from 0 to"),
        ("abort_ratio.ceiling=0.2", "there is no setting 'abort_ratio.ceiling'"),
        ("drifts_above=1.5", "a whole number"),
        ("produce_rate.fall_share=2", "from 0 to 1"),
        ("produce_rate.direction=up", "one of above, below, both"),
        ("produce_rate.is_backlog=1", "true or false"),
        ("produce_rate.open_seconds=7200", "no policy may wait longer"),
    ],
)
def test_what_cannot_be_set_is_rejected_with_what_may_be_meant(change: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        override_settings(SETTINGS, [change])
