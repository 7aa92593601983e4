"""The members of groups, and which partitions each of them owns.

Owned is what the coordinator reports as assigned. A classic group reports assignments only while it
is stable; a KIP-848 group reports at any time what each member owns, but while it reconciles a
partition without an owner may still be with a member that has yet to give it up. So a partition
has an owner, has none, or that is not known: never a guess.
Source: DescribeGroups v5 with the assignments of the consumer protocol, ConsumerGroupDescribe v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.identity import TopicPartition

if TYPE_CHECKING:
    from rules.facts.groups import Group
    from rules.facts.partitions import PartitionIndex

STABLE: Final = "Stable"
EMPTY: Final = "Empty"
# Topics by name, each with its partitions.
Assignment = tuple[tuple[str, tuple[int, ...]], ...]


class Ownership(StrEnum):
    """Whether a member of the group owns a partition."""

    MEMBER = "member"
    NOBODY = "nobody"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of a group as its coordinator describes it."""

    member_id: str
    client_id: str
    host: str  # as the coordinator saw the client's address, without Kafka's leading slash
    instance_id: str | None  # of a static member
    epoch: int | None  # of a KIP-848 member
    assignment: Assignment | None  # None: not known, as during a rebalance of a classic group

    @property
    def partitions(self) -> Iterator[TopicPartition]:
        """Yield the partitions that it is known to own."""
        for topic, numbers in self.assignment or ():
            for number in numbers:
                yield TopicPartition(topic, number)

    @property
    def partition_count(self) -> int | None:
        """Return how many partitions it owns, None if that is not known."""
        if self.assignment is None:
            return None
        return sum(len(numbers) for _, numbers in self.assignment)


def is_fully_described(group: Group) -> bool:
    """Whether a partition that no member of this group owns has no owner at all."""
    if group.members is None or group.state not in (STABLE, EMPTY):
        return False
    return all(member.assignment is not None for member in group.members)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assignments:
    """One row per partition that a member of a group owns, ordered by group and row."""

    group: Int64s  # position in `Snapshot.groups`
    row: Int64s  # row of the partition index
    member: Int64s  # position in the members of that group
    is_complete: Bools  # per group: a partition without a row here has no owner

    @classmethod
    def unread(cls, groups: int = 0) -> Assignments:
        """Return that no owner is known."""
        nothing = np.zeros(0, np.int64)
        return cls(
            group=nothing, row=nothing, member=nothing, is_complete=np.zeros(groups, np.bool_)
        )

    def owners(self, group: Int64s, row: Int64s) -> Column:
        """Return the position of the member that owns each (group, row); absent: none is known."""
        if not len(self.row):
            return Column.absent(len(row))
        width = 1 + max(int(self.row.max()), int(row.max(initial=0)))
        own, asked = self.group * width + self.row, group * width + row
        places = np.minimum(np.searchsorted(own, asked), len(own) - 1)
        return Column(self.member, np.ones(len(own), np.bool_)).take(
            np.where(own[places] == asked, places, -1)
        )

    def are_unowned(self, group: Int64s, row: Int64s) -> Bools:
        """Mark the (group, row) pairs that certainly have no owner."""
        if not len(self.is_complete):
            return np.zeros(len(row), np.bool_)
        mask: Bools = self.is_complete[group] & ~self.owners(group, row).valid
        return mask


@dataclass(slots=True)
class AssignmentBuilder:
    """Builds the columns; a group that is the same object as in the round before costs nothing anew."""

    _index: PartitionIndex | None = None
    _groups: tuple[Group, ...] = ()
    _built: Assignments = field(default_factory=Assignments.unread)
    _own: dict[str, tuple[Group, Int64s, Int64s]] = field(default_factory=dict)

    def build(self, groups: tuple[Group, ...], index: PartitionIndex) -> Assignments:
        """Return who owns what of the partitions in this index.

        A partition that two members claim has no known owner, and its group is not complete.
        """
        if groups is self._groups and index is self._index:
            return self._built
        own = self._own if index is self._index else {}
        starts: list[int] = index.starts.tolist()
        self._own = {group.group_id: _own_of(group, index, starts, own) for group in groups}
        self._groups, self._index = groups, index
        self._built = _joined(groups, list(self._own.values()))
        return self._built


def _own_of(
    group: Group,
    index: PartitionIndex,
    starts: Sequence[int],
    before: Mapping[str, tuple[Group, Int64s, Int64s]],
) -> tuple[Group, Int64s, Int64s]:
    """Return the group, and the rows that its members own with the positions of these members."""
    cached = before.get(group.group_id)
    if cached is not None and cached[0] is group:
        return cached
    rows: list[int] = []
    members: list[int] = []
    for position, member in enumerate(group.members or ()):
        for topic, numbers in member.assignment or ():
            place = index.position_of_topic.get(topic)
            if place is None:
                continue  # the topic is not observed
            begin, end = starts[place], starts[place + 1]
            own = [begin + number for number in numbers if 0 <= number < end - begin]
            rows += own
            members += [position] * len(own)
    row, owner = np.array(rows, np.int64), np.array(members, np.int64)
    order = np.argsort(row, kind="stable")
    return group, row[order], owner[order]


def _flat(parts: Iterable[Int64s]) -> Int64s:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _joined(groups: Sequence[Group], own: Sequence[tuple[Group, Int64s, Int64s]]) -> Assignments:
    counts = np.array([len(row) for _, row, _ in own], np.int64)
    group = np.repeat(np.arange(len(groups), dtype=np.int64), counts)
    row, member = _flat(row for _, row, _ in own), _flat(member for _, _, member in own)
    is_complete = np.array([is_fully_described(entry) for entry in groups], np.bool_)
    is_same = (group[1:] == group[:-1]) & (row[1:] == row[:-1])
    is_twice = np.zeros(len(row), np.bool_)
    is_twice[1:] |= is_same
    is_twice[:-1] |= is_same
    is_complete[group[is_twice]] = False
    return Assignments(
        group=group[~is_twice],
        row=row[~is_twice],
        member=member[~is_twice],
        is_complete=is_complete,
    )
