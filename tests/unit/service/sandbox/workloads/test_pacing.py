"""The rate holds on average; a stall is caught up for one second at most."""

from __future__ import annotations

import pytest

from rules.errors import SandboxError
from service.sandbox.workloads.pacing import BURST_SECONDS, TICK_SECONDS, Pace


def grant(pace: Pace, *, seconds: float, step: float) -> int:
    """Ask every `step` seconds and return how many records were granted in all."""
    steps = round(seconds / step)
    return sum(pace.due(100 + i * step, at_most=10_000) for i in range(steps + 1))


@pytest.mark.parametrize("rate", [0.5, 1.0, 7.0, 200.0, 5000.0])
@pytest.mark.parametrize("step", [0.001, 0.05, 0.3])
def test_rate_holds_on_average(rate: float, step: float) -> None:
    # One more than rate times time: the first record is due at once. Half a record of rounding, and
    # what the next burst would bring.
    rest = 1.5 + rate * BURST_SECONDS
    assert grant(Pace(rate), seconds=30, step=step) == pytest.approx(rate * 30 + 1, abs=rest)


def test_first_record_is_due_at_once() -> None:
    assert Pace(0.1).due(100, at_most=5) == 1


def test_time_before_the_first_question_earns_nothing() -> None:
    assert Pace(1000).due(10_000, at_most=5000) == 1


def test_a_long_stall_is_caught_up_for_one_second() -> None:
    pace = Pace(50)
    pace.due(100, at_most=500)
    assert pace.due(160, at_most=500) == 51  # and the one that was due when the stall began


def test_a_stall_at_a_slow_rate_grants_one() -> None:
    pace = Pace(0.1)
    pace.due(100, at_most=500)
    assert pace.due(1000, at_most=500) == 1


def test_what_did_not_fit_stays_due() -> None:
    pace = Pace(100)
    pace.due(100, at_most=500)
    assert [pace.due(100.5, at_most=30) for _ in range(3)] == [30, 20, 0]


def test_no_rate_grants_all_without_waiting() -> None:
    pace = Pace(None)
    assert pace.due(100, at_most=500) == 500
    assert pace.wait_seconds() == 0


def test_wait_ends_with_the_next_record_and_lasts_one_tick_at_most() -> None:
    quick, slow = Pace(100, burst_seconds=0), Pace(1)
    for pace in (quick, slow):
        pace.due(100, at_most=500)
    assert quick.wait_seconds() == pytest.approx(0.01)
    assert slow.wait_seconds() == TICK_SECONDS


def test_records_come_in_bursts() -> None:
    pace = Pace(64, burst_seconds=0.25)
    assert pace.due(100, at_most=500) == 1
    assert [pace.due(100 + at / 64, at_most=500) for at in (8, 16, 24, 40)] == [0, 16, 0, 24]


def test_wait_lasts_until_the_next_burst() -> None:
    pace = Pace(1000, burst_seconds=0.03)
    pace.due(100, at_most=500)
    pace.due(100.01, at_most=500)
    assert pace.wait_seconds() == pytest.approx(0.02)


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_that_never_sends_is_rejected(rate: float) -> None:
    with pytest.raises(SandboxError, match="above 0"):
        Pace(rate)
