"""Where two logs part: as followers and leaders of Kafka find it (KIP-101, KIP-279)."""

from __future__ import annotations

import pytest

from rules.facts.log_states import EpochStart
from rules.log_files.epochs import EpochEnd, end_of_epoch, find_divergence

Starts = list[tuple[int, int]]


def of(starts: Starts) -> tuple[EpochStart, ...]:
    return tuple(EpochStart(*start) for start in starts)


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        pytest.param(4, EpochEnd(4, 50), id="the latest one ends with the log"),
        pytest.param(2, EpochEnd(2, 30), id="an older one ends where the next begins"),
        pytest.param(3, EpochEnd(2, 30), id="one without records ends as the one before it"),
        pytest.param(0, EpochEnd(0, 10), id="before all of them the first begins there"),
        pytest.param(5, None, id="a later one is not known"),
    ],
)
def test_a_leader_answers_where_an_epoch_ends(epoch: int, end: EpochEnd | None) -> None:
    assert end_of_epoch(of([(2, 10), (4, 30)]), 50, epoch) == end


@pytest.mark.parametrize(
    ("old", "old_end", "new", "new_end", "offset"),
    [
        pytest.param([(0, 0)], 37, [(0, 0), (2, 10)], 50, 10, id="an unclean election"),
        pytest.param([(0, 0)], 17, [(0, 0), (1, 10)], 10, 10, id="a leader without new records"),
        pytest.param([(0, 0)], 10, [(0, 0), (1, 10)], 20, 10, id="the copy has nothing more"),
        pytest.param([(0, 0)], 8, [(0, 0), (1, 10)], 20, 8, id="a follower that lags"),
        pytest.param(
            [(0, 0), (1, 10)], 30, [(0, 0), (2, 8)], 40, 8, id="an epoch that the new log never had"
        ),
        pytest.param(
            [(0, 0), (3, 20)], 30, [(0, 0), (1, 10), (4, 15)], 40, 10,
            id="epochs that only one of them has (KIP-279)",
        ),
        pytest.param([(0, 0), (1, 10)], 30, [(2, 0)], 9, 0, id="nothing is common"),
    ],
)  # fmt: skip
def test_histories_part_at_their_last_common_offset(
    old: Starts, old_end: int, new: Starts, new_end: int, offset: int
) -> None:
    ends = {epoch: end_of_epoch(of(new), new_end, epoch) for epoch, _ in old}
    known = {epoch: end for epoch, end in ends.items() if end is not None}
    assert find_divergence(of(old), old_end, known) == offset


def test_an_epoch_without_an_answer_leaves_it_unknown() -> None:
    assert find_divergence(of([(0, 0), (1, 5)]), 30, {0: EpochEnd(0, 5)}) is None
    assert find_divergence((), 30, {}) is None
