"""From slots of the wall clock to samples and back: where each quarter of a day belongs.

A face is what is expected over one civil day: its 48 slots with three more on either side, of the days
before and after, so that interpolation between slots and shifts of an hour need no special case.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import Float32s
from rules.baseline.civil import SLOTS_PER_DAY, CivilDay

PAD: Final = 3
FACE: Final = SLOTS_PER_DAY + 2 * PAD
INNER: Final = slice(PAD, PAD + SLOTS_PER_DAY)
QUARTERS_PER_HOUR: Final = 4


def wrap_day(slots: Float32s) -> Float32s:
    """Return the face of a day like all others: slots (n, 48) become (n, FACE)."""
    return np.concatenate([slots[:, -PAD:], slots, slots[:, :PAD]], axis=1)


def of_week(week: Float32s, weekday: int) -> Float32s:
    """Return the face of one day of a week: (n, 7, 48) becomes (n, FACE)."""
    before, after = week[:, (weekday - 1) % 7], week[:, (weekday + 1) % 7]
    return np.concatenate([before[:, -PAD:], week[:, weekday], after[:, :PAD]], axis=1)


def draw_samples(face: Float32s, quarters: NDArray[np.int64], per_quarter: int) -> Float32s:
    """Return a value for every sample, linear between the middles of slots: shape (n, samples).

    `quarters` are those of the wall clock, from -4 to 99: outside the day are its neighbours. A sample
    means the middle of its cell.
    """
    halves = _weights(per_quarter)
    if np.array_equal(quarters, np.arange(2 * SLOTS_PER_DAY)):
        # On a day of 24 hours one line is drawn from each middle of a slot to the next one.
        middles = face[:, PAD - 1 : PAD + SLOTS_PER_DAY + 1]
        lines = _lines(middles[:, :-1], middles[:, 1:], np.concatenate(halves))
        return lines[:, per_quarter:-per_quarter]
    left, right = face[:, PAD + (quarters - 1) // 2], face[:, PAD + (quarters + 1) // 2]
    return _lines(left, right, np.where(quarters[:, None] % 2 == 0, halves[1], halves[0]))


def draw_sample(slots: Float32s, quarter: int, cell: int, per_quarter: int) -> Float32s:
    """Return the value of one sample, bit for bit as `draw_samples` has it: shape (n,).

    `slots` is a face with the slots first, (FACE, n): what one sample needs lies together. `cell` is the
    sample's number within the quarter.
    """
    left, right = slots[PAD + (quarter - 1) // 2], slots[PAD + (quarter + 1) // 2]
    value: Float32s = (right - left) * _weights(per_quarter)[1 - quarter % 2][cell]
    value += left
    return value


@lru_cache(maxsize=8)
def _weights(per_quarter: int) -> tuple[Float32s, Float32s]:
    """Return how near to the later slot's middle samples are, of odd quarters and of even ones."""
    within = ((np.arange(per_quarter) + 0.5) / (2 * per_quarter)).astype(np.float32)
    return np.float32(0) + within, np.float32(0.5) + within


def _lines(left: Float32s, right: Float32s, weight: Float32s) -> Float32s:
    lines = (right - left)[:, :, None] * weight
    lines += left[:, :, None]
    return lines.reshape(len(left), left.shape[1] * weight.shape[-1])


def edges(
    upper: Float32s, lower: Float32s, calendar: CivilDay, per_quarter: int
) -> tuple[Float32s, Float32s]:
    """Return both edges of what is usual for every sample of a day, from their faces.

    From 24 hours before a change of the clocks to 7 days after it they are the widest of now, an hour
    before and an hour after: what follows another clock comes an hour off until it is learnt.
    """
    quarters = calendar.quarters
    above, below = (
        draw_samples(upper, quarters, per_quarter),
        draw_samples(lower, quarters, per_quarter),
    )
    near = calendar.is_near_transition
    if near.any():
        samples = np.repeat(near, per_quarter)
        for aside in (-QUARTERS_PER_HOUR, QUARTERS_PER_HOUR):
            moved = quarters[near] + aside
            above[:, samples] = np.maximum(
                above[:, samples], draw_samples(upper, moved, per_quarter)
            )
            below[:, samples] = np.minimum(
                below[:, samples], draw_samples(lower, moved, per_quarter)
            )
    return above, below


def edges_at(
    upper: Float32s, lower: Float32s, calendar: CivilDay, sample: int, per_quarter: int
) -> tuple[Float32s, Float32s]:
    """Return both edges for one sample of a day, bit for bit as `edges` has them; slots first."""
    place, cell = divmod(sample, per_quarter)
    quarter = int(calendar.quarters[place])
    above = draw_sample(upper, quarter, cell, per_quarter)
    below = draw_sample(lower, quarter, cell, per_quarter)
    if calendar.is_near_transition[place]:
        for aside in (-QUARTERS_PER_HOUR, QUARTERS_PER_HOUR):
            moved = quarter + aside
            np.maximum(above, draw_sample(upper, moved, cell, per_quarter), out=above)
            np.minimum(below, draw_sample(lower, moved, cell, per_quarter), out=below)
    return above, below


def gather_slots(
    values: Float32s, calendar: CivilDay, *, widened: bool
) -> tuple[Float32s, NDArray[np.int64]]:
    """Return the samples of each slot, shape (n, 48, most samples), and how many are expected, (48,).

    On a day of 25 hours both copies of an hour belong to its slots; a slot that was skipped expects none.
    Widened, a slot reaches a quarter of an hour into what was before and what came after.
    """
    quarters = len(calendar.quarters)
    per_quarter = values.shape[1] // quarters
    index = _members(tuple(calendar.quarters.tolist()), widened=widened)
    shape = (len(values), SLOTS_PER_DAY, index.shape[1] * per_quarter)
    expected = per_quarter * np.count_nonzero(index >= 0, axis=1)
    if np.array_equal(index.ravel(), np.arange(quarters)):  # not widened, on a day of 24 hours
        return values.reshape(shape), expected
    gap = np.full((len(values), per_quarter), np.nan, np.float32)
    padded = np.concatenate([values, gap], axis=1).reshape(len(values), quarters + 1, per_quarter)
    return padded.take(index, axis=1, mode="wrap").reshape(shape), expected


def hourly_maxima(score: Float32s, calendar: CivilDay) -> Float32s:
    """Return the greatest known score of each hour of the wall clock: (n, 24); NaN where none is."""
    quarters = len(calendar.quarters)
    parts = score.reshape(len(score), quarters, score.shape[1] // quarters)
    by_quarter = np.fmax.reduce(parts, axis=2)
    maxima = np.full((len(score), 24), np.nan, np.float32)
    for place, quarter in enumerate(calendar.quarters.tolist()):
        hour = maxima[:, quarter // QUARTERS_PER_HOUR]
        np.fmax(hour, by_quarter[:, place], out=hour)
    return maxima


@lru_cache(maxsize=8)
def _members(of_day: tuple[int, ...], *, widened: bool) -> NDArray[np.int64]:
    """Return the elapsed quarters of each slot, shape (48, most of a slot), -1 behind the last."""
    last = len(of_day) - 1
    members: list[set[int]] = [set() for _ in range(SLOTS_PER_DAY)]
    reach = 1 if widened else 0
    for place, quarter in enumerate(of_day):
        around = range(max(0, place - reach), min(last, place + reach) + 1)
        members[quarter // 2].update(around)
    index = np.full((SLOTS_PER_DAY, max(len(member) for member in members)), -1)
    for slot, quarters in enumerate(members):
        index[slot, : len(quarters)] = sorted(quarters)
    return index
