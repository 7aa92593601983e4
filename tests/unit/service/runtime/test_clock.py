"""A step of the wall clock, told from two readings of both clocks."""

from __future__ import annotations

from datetime import timedelta

import pytest

from service.runtime.clock import ClockReading, step_between
from tests.factories import NOON


@pytest.mark.parametrize(
    ("wall", "monotonic", "step"),
    [
        pytest.param(15, 15, None, id="both-agree"),
        pytest.param(3615, 15, 3600, id="set-forward"),
        pytest.param(-3585, 15, -3600, id="set-back"),
        pytest.param(17, 15, None, id="slewed-ahead"),
        pytest.param(13, 15, None, id="slewed-behind"),
        pytest.param(17.001, 15, 2.001, id="just-a-step"),
        pytest.param(3600, 3600, None, id="a-long-round-is-no-step"),
        pytest.param(3600, 15, 3585, id="slept"),
    ],
)
def test_step(wall: float, monotonic: float, step: float | None) -> None:
    before = ClockReading(wall=NOON, monotonic_seconds=1000.0)
    after = ClockReading(wall=NOON + timedelta(seconds=wall), monotonic_seconds=1000.0 + monotonic)
    assert step_between(before, after) == (None if step is None else timedelta(seconds=step))
