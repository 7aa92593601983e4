"""The evidence of clients over restarts, steps of the clock, and its limits."""

from __future__ import annotations

import pytest

from rules.facts import writer_memory
from rules.facts.batch_samples import BatchSamples
from rules.facts.client_memory import ClientMemory
from rules.facts.identity import TopicPartition
from rules.facts.memory import Memory, merge_stored, shift_times
from rules.facts.snapshot import Snapshot
from rules.posture.replaced_producers import find_replacements
from tests.factories import group
from tests.unit.rules.posture.client_rounds import (
    beginning,
    commit,
    rounds,
    sample,
    sampled,
    view_after,
    writer,
)

ORDERS = TopicPartition("orders", 0)
SAMPLES = (
    *(sampled(sample(writer(7, 10 * number))) for number in range(4)),
    sampled(sample(beginning(8, 40))),
    *(sampled(sample(writer(8, 10 * number))) for number in range(5, 9)),
)


def after(snapshots: list[Snapshot], memory: Memory | None = None) -> Memory:
    return view_after(snapshots, memory).memory


def replacements(memory: Memory) -> list[tuple[int | None, int | None]]:
    pairs = find_replacements(memory.clients.writers, memory.taken_us)
    return [(each.former.producer_id, each.successor.producer_id) for each in pairs]


@pytest.mark.parametrize("restart", range(1, len(SAMPLES)))
def test_a_restart_of_ours_hides_nothing(restart: int) -> None:
    snapshots = rounds(*SAMPLES)
    stored, seen = after(snapshots[:restart]), after(snapshots[restart:])
    merged = merge_stored(stored, seen)
    assert replacements(merged) == replacements(after(snapshots)) == [(7, 8)]
    merged_writers = merged.clients.writers.partitions[ORDERS].writers
    assert merged_writers == after(snapshots).clients.writers.partitions[ORDERS].writers


def test_commits_are_counted_on_over_a_restart_of_ours() -> None:
    snapshots = rounds(
        sampled(commits=(commit(1, 7), commit(2), commit(3, 7))),
        sampled(commits=(commit(4, 7), commit(5), commit(6, 7))),
        groups=(group("billing"),),
    )
    merged = merge_stored(after(snapshots[:1]), after(snapshots[1:]))
    assert merged.clients.commit_kinds["billing"].between == 2


def test_a_step_of_the_clock_moves_our_times_and_not_those_of_records() -> None:
    memory = after(rounds(*SAMPLES))
    moved = shift_times(memory, 1000)
    for old, new in zip(
        memory.clients.writers.partitions[ORDERS].writers,
        moved.clients.writers.partitions[ORDERS].writers,
        strict=True,
    ):
        assert (new.first_seen_us, new.last_seen_us) == (
            old.first_seen_us + 1000,
            old.last_seen_us + 1000,
        )
        assert new.last_record_us == old.last_record_us


def test_a_clock_that_was_set_back_while_we_were_away_leaves_nothing_in_the_future() -> None:
    late = shift_times(after(rounds(*SAMPLES)), 10**12)
    now = after(rounds(BatchSamples.unread()), late)
    assert now.clients.writers.partitions[ORDERS].last_seen_us <= now.taken_us


def test_what_is_remembered_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_memory, "MOST_PARTITIONS", 2)
    monkeypatch.setattr(writer_memory, "MOST_WRITERS", 2)
    crowded = sampled(*(sample(*map(writer, range(5)), row=row) for row in range(2)))
    memory = after(rounds(crowded, sampled(sample(writer(9), row=2))))
    partitions = memory.clients.writers.partitions
    assert set(partitions) == {TopicPartition("orders", 1), TopicPartition("orders", 2)}
    assert [each.producer_id for each in partitions[TopicPartition("orders", 1)].writers] == [3, 4]


def test_a_partition_of_transactions_alone_is_not_remembered() -> None:
    memory = after(rounds(sampled(sample(writer(7, is_transactional=True)))))
    assert memory.clients == ClientMemory()
