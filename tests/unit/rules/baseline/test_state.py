"""States as bytes."""

from __future__ import annotations

import numpy as np
import pytest

from rules.baseline.state import FORMAT, STATE_BYTES, StateBlock
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
    with pytest.raises(ValueError, match="buffer size"):
        StateBlock.from_buffer(bytes(STATE_BYTES + 1))
