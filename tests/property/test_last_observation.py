"""The memory of observations against a dictionary that does the same one partition at a time."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rules.facts.last_observation import LastObservation, LastObservations, remember
from rules.facts.times import SECOND_US
from tests.factories import at
from tests.property.strategies import Topics, snapshot_of, topics

LEADER = 1  # of every partition, in every round
Key = tuple[str, str | None, int]
Memory = dict[Key, LastObservation | None]


def told(observations: LastObservations) -> Memory:
    found: Memory = {}
    for row in range(len(observations.partitions)):
        name = observations.partitions.index.topic_partition(row)
        found[name.topic, observations.partitions.topic_id(row), name.partition] = observations[row]
    return found


def naive(found: Topics, seconds: int, before: Memory) -> Memory:
    """Remember the same, one partition at a time."""
    memory: Memory = {}
    for name, topic in found.items():
        for partition, end in enumerate(topic.ends):
            key = (name, topic.topic_id, partition)
            stable, watermark, epoch = (
                end.last_stable_offset,
                end.high_watermark,
                end.leader_epoch,
            )
            if stable is None or watermark is None or epoch is None:
                kept = before.get(key) if topic.topic_id is not None else None
                is_reported = kept is not None and LEADER in end.isr
                memory[key] = replace(kept, isr=end.isr) if kept and is_reported else kept
                continue
            older = before.get(key) if topic.topic_id is not None else None
            if older is not None and older.leader_epoch != epoch:
                # Until it is told where that epoch ended, and nobody tells; or of a stale leader.
                memory[key] = older
                continue
            memory[key] = LastObservation(
                topic_id=topic.topic_id,
                leader=LEADER,
                leader_epoch=epoch,
                log_start_offset=end.log_start_offset,
                last_stable_offset=stable,
                high_watermark=watermark,
                log_end_offset=end.log_end_offset,
                isr=end.isr,
                elr=(),
                observed_at_us=round(at(seconds).timestamp() * SECOND_US),
            )
    return memory


rounds = st.lists(topics, min_size=1, max_size=4)


@given(rounds)
def test_rounds_are_remembered_as_one_partition_at_a_time(seen: list[Topics]) -> None:
    observations: LastObservations | None = None
    memory: Memory = {}
    for seconds, found in enumerate(seen):
        observations = remember(snapshot_of(found, seconds), observations)
        memory = naive(found, seconds, memory)
        assert told(observations) == memory


@given(topics, topics)
def test_remembering_the_same_round_twice_changes_nothing(first: Topics, second: Topics) -> None:
    before = remember(snapshot_of(first, 0))
    once = remember(snapshot_of(second, 1), before)
    assert told(remember(snapshot_of(second, 1), once)) == told(once)


@given(rounds)
def test_a_observation_is_only_ever_replaced_by_a_later_one(seen: list[Topics]) -> None:
    observations = remember(snapshot_of(seen[0], 0))
    for seconds, found in enumerate(seen[1:], start=1):
        before, observations = (
            told(observations),
            remember(snapshot_of(found, seconds), observations),
        )
        for key, observation in told(observations).items():
            old = before.get(key)
            if old is not None and key[1] is not None:
                assert observation is not None
                assert observation.observed_at_us >= old.observed_at_us


@given(topics)
def test_whatever_is_remembered_keeps_the_order_of_offsets(found: Topics) -> None:
    for observation in told(remember(snapshot_of(found))).values():
        if observation is None:
            continue
        assert observation.last_stable_offset <= observation.high_watermark
        assert (
            observation.log_end_offset is None
            or observation.high_watermark <= observation.log_end_offset
        )
