"""States as bytes."""

from __future__ import annotations

import numpy as np
import pytest

from rules.baseline.state import _FORMER, FORMAT, STATE_BYTES, StateBlock, is_state_size
from tests.unit.rules.baseline.days import after, daily


def test_states_come_back_from_bytes() -> None:
    states, _ = after(3, daily)
    whole = states.records.tobytes()
    assert len(whole) == STATE_BYTES
    assert StateBlock.from_buffer(whole).records.tobytes() == whole
    assert (
        states.take(np.array([-1, 0, 0])).records.tobytes()
        == StateBlock.new(1).records.tobytes() + 2 * whole
    )


def test_a_state_of_another_format_or_size_is_rejected() -> None:
    other = StateBlock.new(1)
    other.records["format"] = FORMAT + 1
    with pytest.raises(ValueError, match="another format"):
        StateBlock.from_buffer(other.records.tobytes())
    with pytest.raises(ValueError, match=r"another format|buffer size"):
        StateBlock.from_buffer(bytes(STATE_BYTES + 1))


def test_states_of_the_version_before_are_read() -> None:
    states, _ = after(3, daily)
    former = np.zeros(1, _FORMER)
    for name in _FORMER.names or ():
        former[name] = states.records[name]
    former["format"], former["maxima"] = FORMAT - 1, 1e6
    read = StateBlock.from_buffer(former.tobytes()).records
    assert is_state_size(_FORMER.itemsize)
    assert read["format"] == FORMAT
    assert (read["maxima"] == 60_000).all()
    assert (read["maxima_below"] == 60_000).all()
    assert np.isnan(read["drifts"]).all()
    for name in ("levels", "delta", "errors", "known", "change_runs"):
        assert read[name].tobytes() == states.records[name].tobytes()
