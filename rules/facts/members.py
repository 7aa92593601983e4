"""The members of groups, and which partitions each of them owns.

Owned is what the coordinator reports as assigned. A classic group reports assignments only while it
is stable; a KIP-848 group reports at any time what each member owns, but while it reconciles a
partition without an owner may still be with a member that has yet to give it up. So a partition
has an owner, has none, or that is not known: never a guess.
Source: DescribeGroups v5 with the assignments of the consumer protocol, ConsumerGroupDescribe v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s, find_codes
from rules.facts.identity import TopicPartition

if TYPE_CHECKING:
    from rules.facts.groups import Group
    from rules.facts.partitions import PartitionIndex

STABLE: Final = "Stable"
EMPTY: Final = "Empty"
_BITS_OF_ROW: Final = 32
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
    def identity(self) -> str:
        """Return what a restart does not change: the instance id of a static member."""
        return self.instance_id or self.member_id

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
    key: Int64s  # of `group` and `row`, ascending
    is_complete: Bools  # per group: a partition without a row here has no owner

    @classmethod
    def unread(cls, groups: int = 0) -> Assignments:
        """Return that no owner is known."""
        nothing = np.zeros(0, np.int64)
        is_complete = np.zeros(groups, np.bool_)
        return cls(group=nothing, row=nothing, member=nothing, key=nothing, is_complete=is_complete)

    def owners(self, group: Int64s, row: Int64s) -> tuple[Column, Bools]:
        """Return the position of the member that owns each (group, row); absent: none is known.

        The mask is True where there certainly is no owner.
        """
        owner = Column.absent(len(row))
        if len(self.key):
            places = find_codes(self.key, _keys(group, row), np.ones(len(row), np.bool_))
            owner = Column(np.where(places < 0, 0, self.member[places]), places >= 0)
        if not len(self.is_complete):
            return owner, np.zeros(len(row), np.bool_)
        return owner, self.is_complete[group] & ~owner.valid


def _keys(group: Int64s, row: Int64s) -> Int64s:
    """Return one number per pair, in the order of groups, then of rows."""
    return (group << _BITS_OF_ROW) | row


@dataclass(frozen=True, slots=True)
class _Own:
    """What the members of one group own: rows in ascending order, with the positions of the members."""

    group: Group
    row: Int64s
    member: Int64s
    is_complete: bool


@dataclass(slots=True)
class AssignmentBuilder:
    """Builds the columns; a group that is the same object as in the round before costs nothing anew."""

    _index: PartitionIndex | None = None
    _groups: tuple[Group, ...] = ()
    _built: Assignments = field(default_factory=Assignments.unread)
    _own: dict[str, _Own] = field(default_factory=dict)

    def build(self, groups: tuple[Group, ...], index: PartitionIndex) -> Assignments:
        """Return who owns what of the partitions in this index.

        A partition that two members claim has no known owner, and its group is not complete.
        """
        if groups is self._groups and index is self._index:
            return self._built
        before = self._own if index is self._index else {}
        cached = ((group, before.get(group.group_id)) for group in groups)
        own = {group.group_id: own for group, own in cached if own and own.group is group}
        changed = [group for group in groups if group.group_id not in own]
        own |= {entry.group.group_id: entry for entry in _own_of(changed, index)}
        self._own = {group.group_id: own[group.group_id] for group in groups}
        self._groups, self._index = groups, index
        self._built = _joined(list(self._own.values()))
        return self._built


def _own_of(groups: Sequence[Group], index: PartitionIndex) -> Iterator[_Own]:
    """Yield what the members of each of these groups own; a thousand of them in one pass."""
    numbers: list[int] = []
    runs: list[tuple[int, int, int, int, int]] = []  # group, member, partitions, rows of the topic
    place_of, starts = index.position_of_topic, index.starts.tolist()
    for place, group in enumerate(groups):
        for position, member in enumerate(group.members or ()):
            for topic, owned in member.assignment or ():
                if (topic_place := place_of.get(topic)) is not None:  # it is observed
                    numbers += owned
                    begin, end = starts[topic_place : topic_place + 2]
                    runs.append((place, position, len(owned), begin, end))
    columns = np.array(runs, np.int64).reshape(-1, 5)
    of_group, member, _, begin, end = np.repeat(columns, columns[:, 2], axis=0).T
    number = np.array(numbers, np.int64)
    row = begin + number
    is_listed = (number >= 0) & (row < end)
    of_group, row, member = of_group[is_listed], row[is_listed], member[is_listed]
    order = np.lexsort((row, of_group))
    of_group, row, member = of_group[order], row[order], member[order]
    bounds = np.searchsorted(of_group, np.arange(len(groups) + 1)).tolist()
    for place, group in enumerate(groups):
        own = slice(bounds[place], bounds[place + 1])
        yield _Own(group, row[own], member[own], is_fully_described(group))


def _flat(parts: Iterable[Int64s]) -> Int64s:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _joined(own: Sequence[_Own]) -> Assignments:
    counts = np.array([len(entry.row) for entry in own], np.int64)
    group = np.repeat(np.arange(len(own), dtype=np.int64), counts)
    row, member = _flat(entry.row for entry in own), _flat(entry.member for entry in own)
    is_complete = np.array([entry.is_complete for entry in own], np.bool_)
    is_same = (group[1:] == group[:-1]) & (row[1:] == row[:-1])
    is_twice = np.zeros(len(row), np.bool_)
    is_twice[1:] |= is_same
    is_twice[:-1] |= is_same
    is_complete[group[is_twice]] = False
    group, row = group[~is_twice], row[~is_twice]
    return Assignments(
        group=group,
        row=row,
        member=member[~is_twice],
        key=_keys(group, row),
        is_complete=is_complete,
    )
