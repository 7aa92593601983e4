"""How many usual deviations open an episode: more for a series that is often that far out."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import THRESHOLDS_BY, Float32s, ThresholdBy
from rules.baseline.order import at_rank, count_known
from rules.baseline.rings import Records
from rules.baseline.settings import BaselineSettings

_HOURS: Final = 28 * 24
_LEAST: Final = THRESHOLDS_BY.index(ThresholdBy.LEAST)
_OWN: Final = THRESHOLDS_BY.index(ThresholdBy.OWN_HISTORY)
_LIMIT: Final = THRESHOLDS_BY.index(ThresholdBy.LIMIT)


def thresholds(records: Records, settings: BaselineSettings) -> tuple[Float32s, NDArray[np.uint8]]:
    """Return the threshold of each series and which term made it.

    max(k_min, 1.1 * cap), at most 4 k_min. The cap is the 33rd largest hourly maximum of the score in 28
    days; of a series that is known for less time the rank is smaller in proportion.
    """
    ordered = np.sort(records["maxima"].reshape(len(records), _HOURS), axis=-1)
    counts = count_known(ordered)
    above = settings.hours_above * counts // _HOURS
    cap = np.where(counts > above, at_rank(ordered, counts - 1 - above), np.float32(0))
    own = np.fmax(cap, np.float32(0)) * np.float32(settings.cap_margin)
    least = np.float32(settings.k_min)
    limit = np.float32(settings.k_min * settings.cap_limit)
    by = np.where(own > limit, _LIMIT, np.where(own > least, _OWN, _LEAST))
    return np.clip(own, least, limit).astype(np.float32), by.astype(np.uint8)
