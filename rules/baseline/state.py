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

FORMAT: Final = 2
LEVEL_DAYS: Final = 35  # slot medians: five of each weekday
SCALE_DAYS: Final = 14  # residual quantiles per slot, candidates' errors
MONTH_DAYS: Final = 28  # global scale, hourly maxima, trend
WEEK_DAYS: Final = 7
DAY_QUARTERS: Final = 4
GREATEST_MAXIMUM: Final = 60_000  # of a score: what half precision holds

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
        # Maxima of what would have opened, per hour of the wall clock: of the least score of the time
        # that a policy waits, above and below; of slow changes per quarter of the day.
        ("maxima", "<f2", (MONTH_DAYS, 24)),
        ("maxima_below", "<f2", (MONTH_DAYS, 24)),
        ("drifts", "<f2", (MONTH_DAYS, DAY_QUARTERS)),
        ("falls", "u1", (MONTH_DAYS,)),  # hours in which it had fallen
        # Of the last day with samples: the correction that it alone asked for, and its range.
        ("delta_seen", "<f4"),
        ("seen_least", "<f4"),
        ("seen_most", "<f4"),
    ]
)
STATE_BYTES: Final = STATE.itemsize
# Of the version before: one ring of maxima, of single scores on both sides, and nothing behind it.
_FORMER: Final = np.dtype(
    [
        *((name, STATE[name]) for name in STATE.names[: STATE.names.index("maxima")]),
        ("maxima", "<f4", (MONTH_DAYS, 24)),
    ]
    if STATE.names
    else []
)
_FORMATS: Final = {FORMAT: STATE, FORMAT - 1: _FORMER}


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
            if STATE[name].base.kind == "f":
                records[name] = np.nan
        return cls(records)

    @classmethod
    def from_buffer(cls, buffer: bytes | memoryview) -> Self:
        """Return states from their records, one after another; those of the version before are read too.

        Raises:
            ValueError: no whole number of records, or another format.
        """
        number = int.from_bytes(buffer[:2], "little") if len(buffer) else FORMAT
        layout = _FORMATS.get(number)
        if layout is None:
            raise ValueError(f"states of another format than {FORMAT}")
        records = np.frombuffer(buffer, layout)
        if (records["format"] != number).any():
            raise ValueError(f"states of another format than {number}")
        return cls(records if number == FORMAT else _renew(records))

    def take(self, rows: NDArray[np.int64]) -> StateBlock:
        """Return some of the states in another order; -1: no state yet."""
        has_state = rows >= 0
        if has_state.all():
            return StateBlock(self.records[rows])
        taken = StateBlock.new(len(rows))
        taken.records[has_state] = self.records[rows[has_state]]
        return taken


def _renew(former: NDArray[np.void]) -> NDArray[np.void]:
    """Return records of the version before in the present format.

    Its maxima count for both sides: thresholds begin no lower than they were, and settle in four weeks.
    """
    records = StateBlock.new(len(former)).records
    for name in former.dtype.names or ():
        if name not in ("format", "maxima"):
            records[name] = former[name]
    maxima = np.minimum(former["maxima"], np.float32(GREATEST_MAXIMUM))
    records["maxima"] = records["maxima_below"] = maxima
    return records


def is_state_size(size: int) -> bool:
    """Whether records of some format that is read here have that many bytes."""
    return size in (layout.itemsize for layout in _FORMATS.values())
