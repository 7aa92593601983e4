"""One baseline run: a day's samples and the previous states become new states and baselines.

The formulas stand in the modules that are named here in their order; this one only carries values between
them. Everything is a function of one series' own values: no sum runs over a block, and rows are taken
some at a time only so that they stay in the processor's cache.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline import changes, masking, maxima, profiles, scales
from rules.baseline.blocks import BaselineBlock, DayBlock, Float32s
from rules.baseline.changes import Levels
from rules.baseline.civil import CivilDay
from rules.baseline.clockface import INNER, draw_samples, gather_slots
from rules.baseline.correction import Correction, agree
from rules.baseline.judging import novelty_from
from rules.baseline.order import count_known, medians, medians_of_days
from rules.baseline.outcomes import FIRST_SECONDS
from rules.baseline.policy import BaselineSettings
from rules.baseline.profiles import WEEKLY, Candidates
from rules.baseline.publishing import build_baselines, expected_faces
from rules.baseline.rings import Records, catch_up, same_weekdays
from rules.baseline.scales import Policies
from rules.baseline.scores import HOUR_MS, Expected, Faces, score_residuals
from rules.baseline.state import STATE, StateBlock

ROWS_AT_ONCE: Final = 128  # series
_GREATEST: Final = np.float32(1e30)  # beyond: not a measurement


def advance(
    states: StateBlock, day: DayBlock, calendar: CivilDay, settings: BaselineSettings
) -> tuple[StateBlock, BaselineBlock]:
    """Learn from one day; row i of the states is row i of the day.

    The result for a series depends on that series alone, bit for bit. Days that were left out since a
    state's last run count as days without data.

    Raises:
        ValueError: rows, shapes or the step do not fit; a state is of that day or later.
    """
    _check(states, day, calendar)
    records = states.records.astype(STATE, copy=True)
    parts = [
        _BaselineDay(records[rows], day.at(rows), calendar, settings).learn()
        for rows in _slices(len(day))
    ]
    return StateBlock(records), BaselineBlock.join(parts)


class _BaselineDay:
    """The run of some series over one day; `records` is a view that becomes the new states."""

    def __init__(
        self, records: Records, day: DayBlock, calendar: CivilDay, settings: BaselineSettings
    ) -> None:
        self.records = records
        self.day = day
        self.calendar = calendar
        self.settings = settings
        self.policies = Policies.of(day.metric, settings)
        self.per_quarter = calendar.samples(day.step_ms) // len(calendar.quarters)
        self.first_samples = FIRST_SECONDS * 1000 // day.step_ms
        is_measured = np.abs(day.values) < _GREATEST
        self.values = np.where(is_measured, day.values, np.float32(np.nan))
        self.values += np.float32(0)
        self.learnable = masking.drop_masked(self.values, day)

    def learn(self) -> BaselineBlock:
        """Bring the states up to the day, and return the baselines after it."""
        catch_up(self.records, self.calendar.number - 1)
        before = profiles.candidates(self.records, self.calendar.number - 1)
        sides = scales.scales(self.records, self.policies)
        faces = expected_faces(self.records, before, sides, self.policies, self.calendar.weekday)
        self._keep_deviations(faces)
        was_moved = self._keep_levels(before, faces, sides)
        self._keep_counts()
        after = profiles.candidates(self.records, self.calendar.number)
        self._choose(before, after, was_moved)
        self.records["last_day"] = self.calendar.number
        return build_baselines(
            self.records,
            after,
            day=self.day,
            calendar=self.calendar,
            settings=self.settings,
        )

    def _keep_deviations(self, faces: Faces) -> None:
        """Remember residuals against the baseline in force, and the greatest score of each hour.

        A series without a baseline is compared with the median of the day, and has no scores.
        """
        expected = Expected.on(faces, self.calendar, self.day.step_ms)
        residual = self.learnable - expected.mid
        new = np.flatnonzero(self.records["profile"] == 0)
        level = medians(faces.mid[:, INNER])
        level[new] = medians(self.learnable[new])
        residual[new] = self.learnable[new] - level[new][:, None]
        earlier = np.full((len(residual), HOUR_MS // self.day.step_ms), np.nan, np.float32)
        scores = score_residuals(
            residual,
            expected,
            self.policies,
            earlier=earlier,
            novelty_from=novelty_from(self.settings),
        )
        maxima.keep_maxima(
            self.records,
            maxima.JudgedDay(scores, expected.mid, self.calendar, self.day.step_ms),
            self.policies,
            novelty_from(self.settings),
        )
        expected.mid[new] = level[new][:, None]
        scales.keep_residuals(
            self.records,
            scales.Residuals(residual, expected.mid, level),
            self.policies,
            self.calendar,
            self.first_samples,
        )

    def _keep_levels(
        self, before: Candidates, faces: Faces, sides: scales.Scales
    ) -> NDArray[np.bool_]:
        """Remember the day's levels; return whose ring was moved onto a new level."""
        members, expected = gather_slots(self.learnable, self.calendar, widened=True)
        seen = medians(members, np.maximum(1, (expected + 1) // 2))
        profiles.keep_errors(self.records, before, seen, self.calendar)
        by_ring = before.face(self.records["profile"], self.calendar.weekday)
        of_weekday = same_weekdays(self.records, "levels", self.calendar.weekday)
        usual_level = medians(np.abs(faces.mid[:, INNER]))
        limit = np.fmax(sides.overall, sides.new_level * usual_level)
        levels = Levels(
            seen=seen,
            expected=faces.mid[:, INNER],
            by_ring=by_ring[:, INNER],
            same_weekday=medians_of_days(of_weekday),
            least=limit,
        )
        was_moved = changes.follow(self.records, levels, self.calendar, self.settings.change_mads)
        by_day = self.records["day_median"]
        is_first = np.isnan(by_day).all(axis=1)
        half = (self.learnable.shape[1] + 1) // 2
        least = np.where(is_first, self.first_samples, half)
        place = self.calendar.number % by_day.shape[1]
        by_day[:, place] = medians(self.learnable, least)
        self.records["levels"][:, place] = seen
        return was_moved

    def _keep_counts(self) -> None:
        present = count_known(self.values)
        nonzero = _count_marks(self.values != 0) - (self.values.shape[1] - present)
        place = self.calendar.number % self.records["known"].shape[1]
        self.records["known"][:, place] = present * self.day.step_ms // 1000
        self.records["nonzero"][:, place] = nonzero * self.day.step_ms // 1000
        is_seen = present > 0
        self.records["seen_day"][is_seen] = self.calendar.number
        is_first = is_seen & (self.records["first_day"] == 0)
        self.records["first_day"][is_first] = self.calendar.number

    def _choose(self, before: Candidates, after: Candidates, was_moved: NDArray[np.bool_]) -> None:
        """Choose the profile, and correct its level by the day's median distance from it.

        A weekly profile is compared as it was before that day: the coming weekday has not seen it
        either. The others as they are now: so is the coming day's.
        """
        weekday = self.calendar.weekday
        profile = profiles.choose_profiles(self.records, after.usable)
        face = after.face(profile, weekday)
        earlier = before.face(profile, weekday)
        by_earlier = (profile == WEEKLY) & ~was_moved
        face = np.where(by_earlier[:, None], earlier, face)
        used = masking.select_for_delta(self.records, self.values, self.day)
        seen = self._correction(after, profile, used, self._drawn(face))
        before_that = np.where(was_moved, np.float32(np.nan), self.records["delta_seen"])
        is_reported = ~np.isnan(seen)
        self.records["profile"][is_reported] = profile[is_reported]
        self.records["delta"][is_reported] = agree(seen, before_that)[is_reported]
        self.records["delta_seen"][is_reported] = seen[is_reported]
        self.records["seen_least"][is_reported] = np.fmin.reduce(used, axis=1)[is_reported]
        self.records["seen_most"][is_reported] = np.fmax.reduce(used, axis=1)[is_reported]

    def _correction(
        self, after: Candidates, profile: NDArray[np.uint8], used: Float32s, expected: Float32s
    ) -> Float32s:
        """Return the median distance of a day from its profile, of rates at their usual level."""
        scatters = self.policies.is_proportional
        correction = Correction.of(self.records, after, profile, scatters)
        off = used - expected
        rows = np.flatnonzero(scatters)
        off[rows] /= correction.take(rows).weights(expected[rows])
        return medians(off, self.first_samples) + np.float32(0)

    def _drawn(self, face: Float32s) -> Float32s:
        return draw_samples(face, self.calendar.quarters, self.per_quarter)


def _check(states: StateBlock, day: DayBlock, calendar: CivilDay) -> None:
    shape = (len(day), calendar.samples(day.step_ms))
    if day.values.shape != shape or len(states) != len(day) or len(day.metric) != len(day):
        raise ValueError(f"{calendar.day} has samples of {day.values.shape}, not {shape}")
    if day.masked is not None and day.masked.shape != shape:
        raise ValueError(f"{calendar.day} has masks of {day.masked.shape}, not {shape}")
    if day.values.dtype != np.float32:
        raise ValueError(f"samples are {day.values.dtype}, not float32")
    if (states.records["last_day"] >= calendar.number).any():
        raise ValueError(f"a state has already learnt from {calendar.day} or a later day")


def _slices(rows: int) -> list[slice]:
    return [slice(first, first + ROWS_AT_ONCE) for first in range(0, max(rows, 1), ROWS_AT_ONCE)]


def _count_marks(marks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the marks of each row; many times faster than counting along an axis."""
    counted: NDArray[np.int64] = np.bitwise_count(np.packbits(marks, axis=1)).sum(
        axis=1, dtype=np.int64
    )
    return counted
