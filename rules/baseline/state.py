"""The state of a series between baseline runs: a record of fixed size, replaced by every run.

Rings are addressed by the day's number modulo their length, so that nothing is ever moved; days without a
run are emptied by the next one. A record is stored as its bytes; its first field is its format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rules.baseline.civil import SLOTS_PER_DAY

FORMAT: Final = 1
LEVEL_DAYS: Final = 35  # slot medians: five of each weekday
SCALE_DAYS: Final = 14  # residual quantiles per slot, candidates' errors
MONTH_DAYS: Final = 28  # global scale, hourly maxima, trend
WEEK_DAYS: Final = 7

STATE: Final = np.dtype(
    [
        ("format", "<u2"),
        ("profile", "u1"),  # the one in force: a place in `blocks.PROFILES`
        (
            "change_runs",
            "u1",
        ),  # runs for which the change of level has lasted; 2: the ring follows it
        ("first_day", "<i4"),  # number of the first day with data; 0: none yet
        ("last_day", "<i4"),  # number of the last day with a run; 0: none yet
        ("seen_day", "<i4"),  # number of the last day with data
        ("delta", "<f4"),
        ("changed_before", "<f4"),
        ("changed_after", "<f4"),
        ("masked_ms", "<i4"),  # how long it had been masked without a pause at midnight
        ("changed_at_ms", "<i8"),
        ("known", "<i4", (WEEK_DAYS,)),  # seconds of which there are samples
        ("nonzero", "<i4", (WEEK_DAYS,)),  # seconds of which the samples are not zero
        ("errors", "<f4", (SCALE_DAYS, 3)),  # of constant, daily, weekly
        ("day_median", "<f4", (LEVEL_DAYS,)),
        ("scale", "<f4", (MONTH_DAYS,)),  # q95 of |residual|
        ("levels", "<f4", (LEVEL_DAYS, SLOTS_PER_DAY)),
        ("above", "<f4", (SCALE_DAYS, SLOTS_PER_DAY)),  # q95 of residuals
        ("below", "<f4", (SCALE_DAYS, SLOTS_PER_DAY)),  # -q05 of residuals
        ("maxima", "<f4", (MONTH_DAYS, 24)),  # of the score, per hour of the wall clock
    ]
)
STATE_BYTES: Final = STATE.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class StateBlock:
    """States of n series; a new series has a record in which nothing is known."""

    records: NDArray[np.void]  # (n,) of STATE

    def __len__(self) -> int:
        return len(self.records)

    @classmethod
    def new(cls, series: int) -> Self:
        """Return states of series that were never seen."""
        records = np.zeros(series, STATE)
        records["format"] = FORMAT
        for name in STATE.names or ():
            if STATE[name].base == np.dtype("<f4"):
                records[name] = np.nan
        return cls(records)

    @classmethod
    def from_buffer(cls, buffer: bytes | memoryview) -> Self:
        """Return states from their records, one after another.

        Raises:
            ValueError: no whole number of records, or another format.
        """
        records = np.frombuffer(buffer, STATE)
        if (records["format"] != FORMAT).any():
            raise ValueError(f"states of another format than {FORMAT}")
        return cls(records)

    def take(self, rows: NDArray[np.int64]) -> StateBlock:
        """Return some of the states in another order; -1: no state yet."""
        has_state = rows >= 0
        if has_state.all():
            return StateBlock(self.records[rows])
        taken = StateBlock.new(len(rows))
        taken.records[has_state] = self.records[rows[has_state]]
        return taken
