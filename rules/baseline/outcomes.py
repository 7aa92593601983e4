"""The outcome of a baseline run for each series, with its reason: closed sets."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import OUTCOMES, REASONS, Outcome, Reason
from rules.baseline.policy import BaselineSettings
from rules.baseline.profiles import WEEKLY_FROM_DAYS
from rules.baseline.rings import Records
from rules.baseline.scales import Policies
from rules.baseline.state import LEVEL_DAYS, WEEK_DAYS

FIRST_SECONDS: Final = 2 * 3600  # less is nothing to learn from
FULL_SECONDS: Final = 20 * 3600  # of a first day

_VERDICTS: Final = (  # the last that holds counts
    (Outcome.BANDED, Reason.LEARNT),
    (Outcome.BANDED, Reason.FIRST_WEEKS),
    (Outcome.NO_DATA, Reason.SILENT_DAY),
    (Outcome.YOUNG, Reason.FIRST_DAY),
    (Outcome.SPARSE, Reason.MOSTLY_ZERO),
    (Outcome.YOUNG, Reason.FEW_HOURS),
    (Outcome.VANISHED, Reason.SILENT_WEEK),
)
_CODES: Final = np.array(
    [(OUTCOMES.index(outcome), REASONS.index(reason)) for outcome, reason in _VERDICTS], np.uint8
)
_BANDED: Final = tuple(OUTCOMES.index(banded) for banded in (Outcome.BANDED, Outcome.NO_DATA))
_FIRST_DAY: Final = REASONS.index(Reason.FIRST_DAY)


def outcomes(
    records: Records, policies: Policies, today: int, settings: BaselineSettings
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the outcome and the reason of each series, as codes."""
    seconds = records["known"].sum(axis=1, dtype=np.int64)
    nonzero = records["nonzero"].sum(axis=1, dtype=np.int64)
    age = today + 1 - records["first_day"]
    silent = today - records["seen_day"]
    holds = (
        (age < WEEKLY_FROM_DAYS, 1),
        (silent > 0, 2),
        ((seconds < FULL_SECONDS) & (age <= WEEK_DAYS), 3),
        (nonzero < policies.min_nonzero * seconds, 4),
        (np.isnan(records["day_median"]).all(axis=1), 5),
        (silent >= settings.vanished_days, 6),
    )
    verdict = np.zeros(len(records), np.int64)
    for holds_for, place in holds:
        verdict[holds_for] = place
    return _CODES[verdict, 0], _CODES[verdict, 1]


def has_band(outcome: NDArray[np.uint8], reason: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which series have a band at all."""
    is_first_day: NDArray[np.bool_] = reason == _FIRST_DAY
    return is_first_day | np.isin(outcome, _BANDED)


def is_kept(records: Records, today: int) -> NDArray[np.bool_]:
    """Mark the states that have a measurement within 35 days: only they are stored."""
    is_recent: NDArray[np.bool_] = today - records["seen_day"] < LEVEL_DAYS
    return is_recent & (records["first_day"] > 0)
