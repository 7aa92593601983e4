"""What one reading of another clock between two of ours says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rules.facts.clocks import difference

SENT = datetime(2026, 3, 1, 3, 0, 0, tzinfo=UTC)
ANSWERED = SENT + timedelta(seconds=2)  # a slow answer


@pytest.mark.parametrize(
    ("theirs", "certain"),
    [
        pytest.param(1.0, 0.0, id="within-the-answer-nothing-is-certain"),
        pytest.param(0.0, 0.0, id="at-its-beginning"),
        pytest.param(2.0, 0.0, id="at-its-end"),
        pytest.param(7.0, 5.0, id="ahead-by-at-least-what-is-behind-the-end"),
        pytest.param(-5.0, -4.999, id="behind-less-the-millisecond-that-was-cut-off"),
        pytest.param(-0.0005, 0.0, id="cut-off-and-within"),
    ],
)
def test_only_what_the_answer_does_not_explain_is_certain(theirs: float, certain: float) -> None:
    found = difference(SENT + timedelta(seconds=theirs), SENT, ANSWERED)
    assert found.certain == timedelta(seconds=certain)
