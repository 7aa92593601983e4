"""Unclean elections without an earlier observation: the partition was never observed under its old leader.

A topic may be created, lose its leader and be led by a stale replica between two rounds. There is no
offset to compare with then, and only the controllers' lines show it. A line may be read some rounds
after the first observation of the new leader, so that the memory must know which topics are new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rules.facts.identity import TopicId, TopicPartition

ElectionKey: TypeAlias = tuple[TopicPartition, TopicId | None, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenElection:
    """An election of a replica that was not in sync; times in microseconds since 1970-01-01 UTC."""

    name: TopicPartition
    topic_id: TopicId | None
    leader: int
    leader_epoch: int  # the new one
    former_leaders: tuple[int, ...]  # one of these led last; empty: not known
    written_us: int | None  # by the controller's clock
    read_us: int  # by our own
    # The election came after this: an observation, or a round in which the topic did not exist.
    since_us: int | None

    @property
    def key(self) -> ElectionKey:
        """Return the key that identifies the election within one cluster."""
        return self.name, self.topic_id, self.leader_epoch

    @property
    def former_leader(self) -> int | None:
        """Return the broker that led before, where only one can have."""
        return self.former_leaders[0] if len(self.former_leaders) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic, or partitions of it, that the round before did not list."""

    topic: str
    topic_id: TopicId | None
    first_partition: int  # the new ones have this number and above
    listed_us: int


def merge_elections(
    stored: tuple[UnseenElection, ...], seen: tuple[UnseenElection, ...]
) -> tuple[UnseenElection, ...]:
    """Merge the stored elections into memory, each once."""
    keys = {election.key for election in seen}
    return (*(election for election in stored if election.key not in keys), *seen)
