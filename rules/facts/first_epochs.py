"""New partitions that were first observed in a leader epoch above 0: elections came before.

A topic may be created, written to and lose its leader between two rounds. Each election, and each time
without a leader, raises the leader epoch, which begins at 0. Whether an election was clean is not in the
epoch: a controller's log line shows it, and its counter of unclean elections is a sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from rules.facts.identity import TopicId, TopicPartition
from rules.facts.times import change_if_set

FirstEpochKey: TypeAlias = tuple[TopicPartition, TopicId | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstEpoch:
    """The first observation of a new partition; times in microseconds since 1970-01-01 UTC."""

    name: TopicPartition
    topic_id: TopicId | None
    leader: int
    leader_epoch: int  # above 0
    # Whether the preferred replica leads, which led first if it was alive: then it may have lost nothing.
    is_preferred: bool
    seen_us: int
    since_us: int | None  # the partition did not exist in the round of this time
    # How many unclean elections controllers counted between the two; None: not known.
    unclean_elections: int | None = None
    reported_us: int | None = None  # None: the controllers' counters are awaited

    @property
    def key(self) -> FirstEpochKey:
        """Return the identity of the partition within one cluster."""
        return self.name, self.topic_id

    @property
    def has_sign(self) -> bool:
        """Whether a counter suggests that another replica than the first leader was elected uncleanly."""
        return bool(self.unclean_elections) and not self.is_preferred


def merge_first_epochs(
    stored: tuple[FirstEpoch, ...], seen: tuple[FirstEpoch, ...]
) -> tuple[FirstEpoch, ...]:
    """Merge the stored first observations into memory, each once; the earlier one was the first."""
    keys = {first.key for first in stored}
    return (*stored, *(first for first in seen if first.key not in keys))


def first_epochs_with_times(
    firsts: tuple[FirstEpoch, ...], change: Callable[[int], int]
) -> tuple[FirstEpoch, ...]:
    """Return the first observations with their times changed."""
    return tuple(
        replace(
            first,
            seen_us=change(first.seen_us),
            since_us=change_if_set(first.since_us, change),
            reported_us=change_if_set(first.reported_us, change),
        )
        for first in firsts
    )
