"""Properties of a night: a series is learnt from its own values alone, bit for bit."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.baseline.blocks import METRICS, BaselineBlock, DayBlock, Float32s
from rules.baseline.civil import CivilDay
from rules.baseline.daily_step import advance
from rules.baseline.state import StateBlock
from tests.unit.rules.baseline.days import FIRST, SETTINGS, STEP_MS, day_of

SERIES = 10
ODD = (0.0, -0.0, 1e-40, 3.4e38, -3.4e38, float("inf"), float("-inf"), float("nan"), 2.0**62)

seeds = st.integers(0, 2**32 - 1)
first_days = st.sampled_from((0, 75, 285))  # a transition of the clocks is in some
few = settings(max_examples=8)


def made(day: CivilDay, seed: int) -> DayBlock:
    """Return a day of series of all kinds: cyclic, flat, rare, wild, broken off, silent, masked."""
    draw = np.random.default_rng([seed, day.number])
    shape = (SERIES, day.samples(STEP_MS))
    hour = np.repeat(day.quarters / 4, shape[1] // len(day.quarters))
    size = np.random.default_rng(seed).gamma(2, 50, (SERIES, 1))
    values = size * (1 + np.sin(hour * np.pi / 12)) + size * draw.standard_t(3, shape) / 20
    values[1] = size[1]
    values[2] = draw.random(shape[1]) < 0.05
    values[3] = draw.choice(ODD, shape[1])
    values[4, draw.integers(shape[1]) :] = np.nan
    values[5] = np.nan
    values[6] += size[6] * 9 * (day.number > FIRST.toordinal() + 288)
    values[draw.random(shape) < draw.choice([0, 0.02, 0.6])] = np.nan
    masked = np.zeros(shape, np.bool_)
    masked[7:9, draw.integers(shape[1]) :] = True
    metric = np.random.default_rng(seed).integers(0, len(METRICS), SERIES).astype(np.uint8)
    with np.errstate(over="ignore"):
        packed = values.astype(np.float32)
    return DayBlock(
        series_id=np.arange(SERIES), metric=metric, step_ms=STEP_MS, values=packed, masked=masked
    )


def nights(
    seed: int, first: int, rows: list[int], count: int = 4
) -> list[tuple[bytes, BaselineBlock]]:
    """Return states and baselines of some of the series after each of a few nights."""
    states, found = StateBlock.new(len(rows)), []
    for number in range(first, first + count):
        day = day_of(number, "Europe/Berlin")
        states, baselines = advance(states, made(day, seed).at(rows), day, SETTINGS)
        found.append((states.records.tobytes(), baselines))
    return found


def bits(baselines: BaselineBlock) -> list[bytes]:
    return [getattr(baselines, place.name).tobytes() for place in fields(BaselineBlock)]


@few
@given(seed=seeds, first=first_days, order=st.permutations(range(SERIES)), cut=st.integers(1, 9))
def test_neither_order_nor_block_matter(seed: int, first: int, order: list[int], cut: int) -> None:
    whole = nights(seed, first, list(range(SERIES)))
    moved = nights(seed, first, order)
    parts = [nights(seed, first, order[:cut]), nights(seed, first, order[cut:])]
    for (_, one), (state, other), *halves in zip(whole, moved, *parts, strict=True):
        assert bits(one.take(np.array(order))) == bits(other)
        assert b"".join(half[0] for half in halves) == state
        columns = zip(bits(halves[0][1]), bits(halves[1][1]), bits(other), strict=True)
        assert all(left + right == both for left, right, both in columns)


@few
@given(seed=seeds, first=first_days)
def test_a_night_is_the_same_again_and_leaves_its_input_alone(seed: int, first: int) -> None:
    day, everything = day_of(first, "Europe/Berlin"), list(range(SERIES))
    states, before = StateBlock.new(SERIES), made(day, seed)
    once, again = (advance(states, before, day, SETTINGS) for _ in range(2))
    assert once[0].records.tobytes() == again[0].records.tobytes()
    assert bits(once[1]) == bits(again[1])
    assert states.records.tobytes() == StateBlock.new(SERIES).records.tobytes()
    assert before.values.tobytes() == made(day, seed).at(everything).values.tobytes()


@few
@given(seed=seeds, first=first_days, slot=st.integers(0, 47))
def test_a_gap_stays_in_its_slot_and_its_series(seed: int, first: int, slot: int) -> None:
    day = day_of(first, "Europe/Berlin")
    plain = made(day, seed)
    values = np.where(np.isnan(plain.values), np.float32(1), plain.values)
    holed = values.copy()
    holed[0, day.slots(STEP_MS) == slot] = np.nan
    with_gap, without = (
        advance(StateBlock.new(SERIES), replace(plain, values=one, masked=None), day, SETTINGS)
        for one in (holed, values)
    )
    for one, other in zip(
        bits(with_gap[1].take(np.arange(1, SERIES))),
        bits(without[1].take(np.arange(1, SERIES))),
        strict=True,
    ):
        assert one == other
    missing = np.flatnonzero(np.isnan(levels(with_gap[0])).any(axis=0))
    assert set(missing.tolist()) <= {slot}
    for name in ("mid", "upper", "lower"):
        usable = getattr(with_gap[1], name)[0, : with_gap[1].slots[0]]
        assert not np.isnan(usable).any()


@few
@given(seed=seeds, first=first_days)
def test_a_band_has_two_edges_and_what_is_expected_between_them(seed: int, first: int) -> None:
    for _, night in nights(seed, first, list(range(SERIES))):
        for row, slots in enumerate(night.slots.tolist()):
            mid, upper, lower = (
                column[row, :slots] for column in (night.mid, night.upper, night.lower)
            )
            assert np.isfinite(upper - lower).all()
            assert (lower < mid).all()
            assert (mid < upper).all()
            assert np.isnan(night.mid[row, slots:]).all()
        assert ((night.threshold >= 3) & (night.threshold <= 12)).all()


def levels(states: StateBlock) -> Float32s:
    """Return the first night's levels of the first series."""
    ring: Float32s = states.records["levels"][0]
    return ring[~np.isnan(ring).all(axis=1)]
