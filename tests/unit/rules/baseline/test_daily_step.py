"""A whole night: what is carried from one to the next, and what it rejects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from rules.baseline.blocks import BaselineBlock, DayBlock, Float32s
from rules.baseline.civil import CivilDay
from rules.baseline.daily_step import advance
from rules.baseline.judging import Judge, Memory
from rules.baseline.policy import POLICIES, BaselineSettings
from rules.baseline.state import StateBlock
from tests.unit.rules.baseline.days import SETTINGS, after, block, daily, day_of, hours, with_level

BERLIN = "Europe/Berlin"


def test_the_published_band_is_what_the_next_day_is_judged_by() -> None:
    states, night = after(30, daily)
    day = day_of(30)
    made = block(with_level(daily, 30, 80)(day, hours(day)))
    judge = Judge.of(night, day, made.step_ms, SETTINGS)
    _, _, scores = judge.replay(Memory.empty(1, made.step_ms), made)
    learnt, _ = advance(states, made, day, SETTINGS)
    residual = np.sort(scores.residual.reshape(1, 48, 6), axis=2)
    ring = learnt.records["above"][:, day.number % 14]
    np.testing.assert_array_equal(ring, residual[:, :, 5])
    for name, sign in (("maxima", 1), ("maxima_below", -1)):
        side = np.where(scores.residual * sign < 0, np.minimum(scores.score, 0), scores.score)
        greatest = np.fmax.reduce(side.reshape(1, 24, 12), axis=2)
        kept = learnt.records[name][:, day.number % 28]
        np.testing.assert_allclose(kept, greatest, rtol=1e-3, atol=1e-3)  # in half precision


def test_a_regular_day_stays_inside_its_band() -> None:
    _, night = after(30, daily)
    day = day_of(30)
    made = block(daily(day, hours(day)))
    judge = Judge.of(night, day, made.step_ms, SETTINGS)
    _, found, scores = judge.replay(Memory.empty(1, made.step_ms), made)
    assert found == []
    assert np.nanmedian(scores.seasonal) < 0.5
    assert np.abs(night.mid[0, :48] - made.values.reshape(48, 6).mean(axis=1)).max() < 4


def test_nights_that_were_left_out_are_days_without_data() -> None:
    states, _ = after(20, daily)
    day = day_of(30)
    made = block(daily(day, hours(day)))
    jumped = advance(states, made, day, SETTINGS)
    for number in range(20, 30):
        empty = day_of(number)
        gaps = np.full((len(made), empty.samples(made.step_ms)), np.nan, np.float32)
        silent = replace(made, values=gaps)
        states, _ = advance(states, silent, empty, SETTINGS)
    stepped = advance(states, made, day, SETTINGS)
    assert stepped[0].records.tobytes() == jumped[0].records.tobytes()
    assert equal(stepped[1], jumped[1])


def test_the_zone_moves_the_profile() -> None:
    def by_utc(day: CivilDay, hour: Float32s) -> Float32s:
        at_ms = day.start_ms + 300_000 * np.arange(len(hour))
        return np.where((at_ms // 3_600_000) % 24 == 6, np.float32(500), np.float32(20))[None]

    peaks = {
        zone: int(after(12, by_utc, zone=zone)[1].mid[0, :48].argmax()) // 2
        for zone in ("UTC", BERLIN, "Asia/Tokyo")
    }
    assert peaks == {"UTC": 6, BERLIN: 7, "Asia/Tokyo": 15}


@pytest.mark.parametrize(("first", "samples"), [(73, 276), (283, 300)], ids=["23 h", "25 h"])
def test_the_profile_stays_on_the_wall_clock_over_a_transition(first: int, samples: int) -> None:
    _, night = after(20, daily, zone=BERLIN, first=first)
    days = [day_of(number, BERLIN) for number in range(first, first + 20)]
    assert samples in {day.samples(300_000) for day in days}
    plain = 100 + 60 * np.sin((np.arange(48) / 2 + 0.25) * np.pi / 12)
    np.testing.assert_allclose(night.mid[0, :48], plain, atol=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda day: replace(day, values=day.values[:, 1:]), "samples of", id="shape"),
        pytest.param(
            lambda day: replace(day, masked=np.zeros((1, 3), np.bool_)), "masks of", id="mask"
        ),
        pytest.param(
            lambda day: replace(day, values=day.values.astype(np.float64)), "float64", id="type"
        ),
        pytest.param(lambda day: replace(day, step_ms=7_000), "does not divide", id="step"),
    ],
)
def test_what_does_not_fit_is_rejected(
    change: Callable[[DayBlock], DayBlock], message: str
) -> None:
    day = day_of(0)
    made = change(block(daily(day, hours(day))))
    with pytest.raises(ValueError, match=message):
        advance(StateBlock.new(1), made, day, SETTINGS)


def test_a_day_is_not_learnt_twice() -> None:
    states, _ = after(2, daily)
    day = day_of(1)
    with pytest.raises(ValueError, match="already learnt"):
        advance(states, block(daily(day, hours(day))), day, SETTINGS)


def test_settings_tell_themselves_apart() -> None:
    assert SETTINGS.text() == BaselineSettings().text()
    others = {
        BaselineSettings(k_min=4).text(),
        BaselineSettings(
            policies={one: replace(of, min_relative=0.3) for one, of in POLICIES.items()}
        ).text(),
    }
    assert len(others | {SETTINGS.text()}) == 3


def test_no_series_at_all_is_a_night_too() -> None:
    day = day_of(0)
    states, night = advance(StateBlock.new(0), block(np.empty((0, 288), np.float32)), day, SETTINGS)
    assert (len(states), len(night)) == (0, 0)


def equal(one: BaselineBlock, other: BaselineBlock) -> bool:
    """Return whether all columns have the same bits."""
    return all(
        getattr(one, place.name).tobytes() == getattr(other, place.name).tobytes()
        for place in fields(BaselineBlock)
    )
