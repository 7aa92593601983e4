"""Fixed ports; free ones need the network and are tried in the integration tests."""

from __future__ import annotations

import pytest

from rules.errors import SandboxError
from service.sandbox.cluster.ports import fixed


def test_fixed_ports_follow_each_other() -> None:
    assert fixed(9092, 3) == [9092, 9093, 9094]


def test_the_last_possible_base_is_allowed() -> None:
    assert fixed(65_533, 3)[-1] == 65_535


@pytest.mark.parametrize("base", [0, -1, 65_534, 70_000])
def test_a_base_without_space_is_rejected(base: int) -> None:
    with pytest.raises(SandboxError, match="no space"):
        fixed(base, 3)
