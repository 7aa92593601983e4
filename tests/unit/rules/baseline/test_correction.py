"""The level correction of a profile: when two days agree, and never beyond what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from rules.baseline.blocks import Float32s
from rules.baseline.correction import Correction, agree
from rules.baseline.profiles import DAILY, candidates
from rules.baseline.state import StateBlock
from tests.unit.rules.baseline.days import day_of

NAN = float("nan")


def correction(level: float, least: float = 60, most: float = 1200) -> Correction:
    return Correction(
        np.array([level], np.float32),
        np.full((1, 48), least, np.float32),
        np.full((1, 48), most, np.float32),
    )


def corrected(by: Correction, delta: float) -> Float32s:
    """Return what is expected of an hour of 200 and of the other ones of 1,000."""
    face = np.full((1, 48), 1000, np.float32)
    face[0, :2] = 200
    return by.apply(face, np.array([delta], np.float32), days=1)[0, [0, 47]]


@pytest.mark.parametrize(
    ("level", "delta", "expected"),
    [
        pytest.param(np.inf, 100, [300, 1100], id="a summand"),
        pytest.param(np.inf, -700, [60, 300], id="no less than was measured: a holiday before"),
        pytest.param(np.inf, 400, [600, 1200], id="nor more"),
        pytest.param(1000, -300, [50 + 60 - 50, 700], id="a share of a rate"),
        pytest.param(400, 40, [220, 1100], id="of half the level at least"),
    ],
)
def test_a_correction_stays_within_what_was_measured(
    level: float, delta: float, expected: list[float]
) -> None:
    np.testing.assert_allclose(corrected(correction(level), delta), expected)


@pytest.mark.parametrize(
    ("seen", "before", "expected"),
    [(50, 30, 30), (-20, -90, -20), (50, -10, 0), (50, 0, 0), (50, NAN, 50)],
)
def test_two_days_have_to_agree(seen: float, before: float, expected: float) -> None:
    days = (np.array([value], np.float32) for value in (seen, before))
    assert agree(*days).tolist() == [expected]


def test_a_level_of_nearly_nothing_has_no_shares() -> None:
    records, day = StateBlock.new(1).records, day_of(0)
    records["day_median"], records["levels"], records["first_day"] = 1e-40, 1e-40, 1
    found = candidates(records, day.number)
    tiny = Correction.of(records, found, np.array([DAILY], np.uint8), np.ones(1, np.bool_))
    assert tiny.weights(np.full((1, 2), 1e30, np.float32)).tolist() == [[1, 1]]
