"""Where a series is going, by its daily medians."""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.baseline.blocks import Float32s
from rules.baseline.order import count_known, medians
from rules.baseline.rings import Records, places
from rules.baseline.state import LEVEL_DAYS, MONTH_DAYS

LEAST_DAYS: Final = 7

_EARLIER, _LATER = np.triu_indices(MONTH_DAYS, 1)
_APART: Final = (_LATER - _EARLIER).astype(np.float32)


def slopes(records: Records, last_day: int) -> Float32s:
    """Return the Theil-Sen slope per day: the median over all pairs of 28 days.

    NaN with fewer than a week of daily medians. It bears 29 % of days that are wrong.
    """
    by_day = records["day_median"][:, places(last_day, MONTH_DAYS, LEVEL_DAYS)]
    slope = medians((by_day[:, _LATER] - by_day[:, _EARLIER]) / _APART)
    return np.where(count_known(by_day) >= LEAST_DAYS, slope, np.float32(np.nan))
