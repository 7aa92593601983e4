"""What is computed once per round."""

from __future__ import annotations

from service.api.core.per_round import PerRound


def test_a_value_is_computed_once_per_round() -> None:
    computed: list[list[str]] = []

    def compute(source: list[str]) -> int:
        computed.append(source)
        return len(computed)

    per_round, first, second = PerRound(compute), ["a"], ["a"]
    values = [per_round.of(source) for source in (first, first, second, second, first)]
    assert values == [1, 1, 2, 2, 3]
