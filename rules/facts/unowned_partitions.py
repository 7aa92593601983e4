"""Partitions of a group that had an owner and have none: which member owned them last, and since when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from rules.facts.member_changes import MemberChanges, Owned

MOST_UNOWNED: Final = 10_000  # partitions of one group
_NONE_OWNED: Final = frozenset[int]()


@dataclass(frozen=True, slots=True, kw_only=True)
class LastOwner:
    """The member that owned a partition which nobody owns now."""

    member_id: str
    client_id: str
    host: str
    has_left: bool  # False: it is still a member, and no longer owns the partition
    lost_us: int  # the first round that saw the partition without an owner


@dataclass(frozen=True, slots=True, kw_only=True)
class UnownedPartitions:
    """Partitions of one topic that nobody owns, and that the same member owned last."""

    topic: str
    partitions: tuple[int, ...]  # ascending
    last_owner: LastOwner


def lost_partitions(
    changes: MemberChanges, owned: Owned, now_us: int
) -> Iterator[UnownedPartitions]:
    """Yield what has no owner since these changes; `owned` are the partitions that have one."""
    for member, now in changes.changed:
        for topic, numbers in member.assignment or ():
            if lost := set(numbers).difference(owned.get(topic, _NONE_OWNED)):
                owner = LastOwner(
                    member_id=member.member_id,
                    client_id=member.client_id,
                    host=member.host,
                    has_left=now is None,
                    lost_us=now_us,
                )
                yield UnownedPartitions(
                    topic=topic, partitions=tuple(sorted(lost)), last_owner=owner
                )


def still_unowned(
    unowned: Iterable[UnownedPartitions], owned: Owned
) -> Iterator[UnownedPartitions]:
    """Yield what had no owner, without the partitions that have one again."""
    for entry in unowned:
        own = owned.get(entry.topic, _NONE_OWNED)
        if own.isdisjoint(entry.partitions):
            yield entry
        elif left := tuple(number for number in entry.partitions if number not in own):
            yield replace(entry, partitions=left)


def join_unowned(
    old: Iterable[UnownedPartitions], new: Iterable[UnownedPartitions]
) -> tuple[UnownedPartitions, ...]:
    """Return both, each partition once, the newest first: what is new of it wins, and is kept."""
    newest = tuple(new)
    if not newest:
        return tuple(old)
    named: dict[str, set[int]] = {}
    for entry in newest:
        named.setdefault(entry.topic, set()).update(entry.partitions)
    return tuple(_first((*newest, *still_unowned(old, named)), MOST_UNOWNED))


def change_times(
    unowned: Iterable[UnownedPartitions], change: Callable[[int], int]
) -> tuple[UnownedPartitions, ...]:
    """Return the same with changed times."""
    return tuple(
        replace(
            entry, last_owner=replace(entry.last_owner, lost_us=change(entry.last_owner.lost_us))
        )
        for entry in unowned
    )


def _first(unowned: Iterable[UnownedPartitions], left: int) -> Iterator[UnownedPartitions]:
    """Yield entries until they have so many partitions."""
    for entry in unowned:
        if left <= 0:
            return
        yield (
            entry
            if len(entry.partitions) <= left
            else replace(entry, partitions=entry.partitions[:left])
        )
        left -= len(entry.partitions)
