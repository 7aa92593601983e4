"""Unclean elections that no observation tells of: nobody had observed the partition under its old leader.

A topic may be made, lose its leader and be led by a stale replica between two rounds. There is no
offset to compare with then, and the controllers' lines alone tell of it. A line may be read some rounds
after the first observation of the new leader, so that it has to be known which topics are new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rules.facts.identity import TopicId, TopicPartition

ElectionKey: TypeAlias = tuple[TopicPartition, TopicId | None, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenElection:
    """A replica was elected that was not in sync; times in microseconds since 1970-01-01 UTC."""

    name: TopicPartition
    topic_id: TopicId | None
    leader: int
    leader_epoch: int  # the new one
    former_leaders: tuple[int, ...]  # one of these led last; none: nobody tells
    written_us: int | None  # by the controller's clock
    read_us: int  # by our own
    # Up to then nothing unseen had happened: an observation, or a round in which the topic was not there.
    since_us: int | None

    @property
    def key(self) -> ElectionKey:
        """What tells it from every other election of one cluster."""
        return self.name, self.topic_id, self.leader_epoch

    @property
    def former_leader(self) -> int | None:
        """Return who led before, where only one can have."""
        return self.former_leaders[0] if len(self.former_leaders) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic, or partitions of it, that the round before did not list."""

    topic: str
    topic_id: TopicId | None
    first_partition: int  # the new ones have this number and above
    listed_us: int


def elections_under(
    stored: tuple[UnseenElection, ...], seen: tuple[UnseenElection, ...]
) -> tuple[UnseenElection, ...]:
    """Return the elections of two processes, each once."""
    known = {one.key for one in seen}
    return (*(one for one in stored if one.key not in known), *seen)
