"""The latest known state of a cluster, with which the next round is compared; carried from round to round.

It is in the checkpoint, so that what changed while Tidemark was not running is found by its first round. What a
round could not read, or read from a broker that is behind, leaves the older state as it is. Times are
microseconds since 1970-01-01 UTC, by our own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rules.facts.identity import TopicId, TopicPartition
from rules.facts.known_settings import KnownSettings
from rules.facts.partitions import Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingTopic:
    """A topic that the latest list lacks, and of which it is not proven that it was deleted."""

    topic_id: TopicId | None
    partitions: int
    listed_us: int  # the last round that listed it
    is_hidden: bool = False  # a broker answered that we may not see it


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownController:
    """The active controller."""

    leader: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownState:
    """What was known of a cluster after a round."""

    partitions: Partitions | None = None  # None: no round read the list of topics
    partitions_us: int = 0  # the last round that read it, 0: none, and so below
    is_complete: bool = False  # whether a topic that this list lacks did not exist, or was hidden
    topic_pattern: str | None = None  # of the topics that were observed; None: all
    missing: Mapping[str, MissingTopic] = field(default_factory=dict)  # by topic
    # Where a reassignment is in progress: the replicas before it.
    reassigned_from: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    # Of topics that were created again: the id before, which an older answer has.
    former_ids: Mapping[str, TopicId] = field(default_factory=dict)
    brokers: Mapping[int, str] | None = None  # by broker id: what it advertises
    brokers_us: int = 0
    controller: KnownController | None = None
    controller_us: int = 0
    settings: KnownSettings = field(default_factory=KnownSettings)
    begun_us: int = 0  # the first round of the cluster that is remembered
    # By broker id: the latest start that a log line shows, by the broker's clock, which is not moved with ours.
    starts_us: Mapping[int, int] = field(default_factory=dict)

    def with_times(self, change: Callable[[int], int]) -> KnownState:
        """Return the state with its times changed."""

        def changed(timestamp_us: int) -> int:
            return change(timestamp_us) if timestamp_us else 0

        return replace(
            self,
            partitions_us=changed(self.partitions_us),
            missing={
                topic: replace(entry, listed_us=change(entry.listed_us))
                for topic, entry in self.missing.items()
            },
            brokers_us=changed(self.brokers_us),
            controller_us=changed(self.controller_us),
            begun_us=changed(self.begun_us),
            settings=replace(self.settings, seen_us=changed(self.settings.seen_us)),
        )

    @property
    def latest_us(self) -> int:
        """Return the latest of its times, 0 where there is none."""
        times = self.partitions_us, self.brokers_us, self.controller_us, self.settings.seen_us
        return max(times)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangeMemory:
    """The memory of one cluster id."""

    state: KnownState = field(default_factory=KnownState)
    # The first state of this process, until the stored one is read; not stored.
    first: KnownState | None = None
    # The state that an earlier process left, until it was compared with the first one; not stored.
    stored: KnownState | None = None

    def with_times(self, change: Callable[[int], int]) -> ChangeMemory:
        """Return the memory with its times changed."""
        return ChangeMemory(
            state=self.state.with_times(change),
            first=None if self.first is None else self.first.with_times(change),
            stored=None if self.stored is None else self.stored.with_times(change),
        )


def merge_changes(stored: ChangeMemory, seen: ChangeMemory) -> ChangeMemory:
    """Merge the stored memory of an earlier process, which may be read some rounds after the start.

    The next round compares what was stored with the first state of this process.
    """
    if seen.first is None:
        return stored
    return replace(seen, stored=stored.state)


def vanished_topics(memory: ChangeMemory, listed: Partitions) -> list[str]:
    """Return the topics that were known and that a list lacks, in the order of their names."""
    states = [state for state in (memory.state, memory.stored) if state is not None]
    missing = {topic for state in states for topic in state.missing}
    for state in states:
        partitions = state.partitions
        if partitions is not None and partitions.index.topics != listed.index.topics:
            missing.update(partitions.index.topics)
    return sorted(missing - listed.index.position_of_topic.keys()) if missing else []
