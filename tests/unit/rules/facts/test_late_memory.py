"""The memory of an earlier process is read after some rounds: what was seen counts, older times too."""

from __future__ import annotations

from typing import Any

from rules.facts.last_observation import microseconds
from rules.facts.memory import Memory, advance, merge_stored
from rules.facts.transaction_log import Outcome, TransactionLog
from tests.factories import at, commits, ended, group, offsets, partitions, snapshot, unseen_offsets

STUCK = offsets(log_end_offset=[100, 130, 100])


def remembered(*observations: dict[str, Any], since: float = 0.0) -> Memory:
    """Return the memory after observations that follow each other by 15 s."""
    memory = None
    for number, observation in enumerate(observations):
        taken = at(since + 15 * number)
        memory = advance(snapshot(**{"taken_at": taken, **observation}), memory)
    assert memory is not None
    return memory


def since_of(memory: Memory, row: int) -> int | None:
    return memory.high_watermark.since_us[row]


def committed(offset: int, *more: tuple[int, int, int]) -> dict[str, Any]:
    return {"groups": (group(),), "commits": commits((0, 0, offset), *more)}


def test_what_stood_before_unchanged_since_then() -> None:
    joined = merge_stored(remembered({"offsets": STUCK}), remembered({"offsets": STUCK}, since=600))
    assert since_of(joined, 1) == microseconds(at(0))


def test_what_moved_unchanged_since_it_was_seen() -> None:
    moved = offsets(high_watermark=[100, 120, 100], log_end_offset=[100, 130, 100])
    joined = merge_stored(remembered({"offsets": STUCK}), remembered({"offsets": moved}, since=600))
    assert since_of(joined, 1) == microseconds(at(600))
    assert joined.high_watermark.values[1] == 120


def test_what_rests_now_does_not_stand() -> None:
    joined = merge_stored(remembered({"offsets": STUCK}), remembered({}, since=600))
    assert since_of(joined, 1) is None


def test_what_was_not_seen_is_as_it_was_stored() -> None:
    unseen = remembered({"offsets": unseen_offsets(3)}, since=600)
    stored = remembered({"offsets": STUCK})
    joined = merge_stored(stored, unseen)
    assert since_of(joined, 1) == microseconds(at(0))
    assert joined.observations[1] == stored.observations[1]


def test_a_rewind_that_happened_meanwhile_is_still_to_be_found() -> None:
    joined = merge_stored(remembered(committed(50)), remembered(committed(40), since=600))
    assert joined.commits.unchanged.values.to_list() == [50]
    forward = merge_stored(remembered(committed(50)), remembered(committed(60), since=600))
    assert forward.commits.unchanged.values.to_list() == [60]


def test_a_commit_that_was_not_seen_is_kept() -> None:
    stored = remembered(committed(50, (0, 2, 7)))
    joined = merge_stored(stored, remembered(committed(60), since=600))
    assert joined.commits.unchanged.values.to_list() == [60, 7]
    assert joined.commits.row.tolist() == [0, 2]


def test_a_commit_that_expired_before_is_known_to_have_expired() -> None:
    start = offsets(log_start_offset=[60, 0, 0])
    stored = remembered(committed(50) | {"offsets": start})
    for seen, expected in (
        (committed(50) | {"offsets": unseen_offsets(3)}, 60),
        (committed(50) | {"offsets": offsets(log_start_offset=[70, 0, 0])}, 70),
        (committed(65) | {"offsets": start}, None),
    ):
        joined = merge_stored(stored, remembered(seen, since=600))
        assert joined.commits.expired_below.to_list() == [expected]


def test_the_observation_before_a_change_of_leader_is_the_one_to_compare_with() -> None:
    new_epoch = {"offsets": offsets(leader_epoch=[6, 5, 5], log_end_offset=[9, 100, 100])}
    stored = remembered({})
    joined = merge_stored(stored, remembered(new_epoch, since=600))
    assert joined.observations[0] == stored.observations[0]
    merged = joined.observations[1]
    assert merged is not None
    assert merged.observed_at_us == microseconds(at(600)), (
        "the same epoch: the newer observation says more"
    )


def test_another_cluster_has_no_older_memory() -> None:
    seen = remembered({"cluster_id": "another"})
    assert merge_stored(remembered({"offsets": STUCK}), seen) is seen


def test_a_topic_that_was_made_again_has_none_either() -> None:
    old = partitions({"orders": 3}, topic_ids=("BBBBBBBBQACBBBBBBBBBBQ",))
    stored = remembered({"offsets": STUCK, "partitions": old})
    joined = merge_stored(stored, remembered({"offsets": STUCK}, since=600))
    assert since_of(joined, 1) == microseconds(at(600))


def test_how_transactions_ended_is_put_together() -> None:
    aborted = TransactionLog(is_read=True, ended=(ended(outcome=Outcome.ABORTED),))
    stored = advance(snapshot(transaction_log=aborted))
    seen = advance(snapshot(taken_at=at(60), transaction_log=aborted))
    merged = merge_stored(stored, seen).transactions
    assert [counts.aborted for counts in merged.outcomes["payments"]] == [1, 1]
    assert merged.began_us == microseconds(at(60))
