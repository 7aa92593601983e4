"""Who owned what in each group, and the rebalances of the last hour, from round to round.

A round sees a group at one moment. Between two rounds a rebalance shows as other members or another
assignment, as the state of a group that is rebalancing, or as a higher group epoch (KIP-848). One that
begins and ends between two rounds and assigns as before leaves no trace in a classic group, so that
counts are lower bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from rules.facts.groups import Group, GroupType
from rules.facts.identity import TopicPartition
from rules.facts.members import EMPTY, STABLE, Member, is_fully_described
from rules.facts.times import MICROSECOND, change_if_set

REMEMBERED_FOR: Final = timedelta(hours=1)  # of rebalances
MOST_REBALANCES: Final = 64  # of one group, the newest
MOST_UNOWNED: Final = 10_000  # partitions of one group
# As long as Kafka keeps commits on topics that a group no longer subscribes to.
UNOWNED_FORGOTTEN_AFTER: Final = timedelta(days=7)
SETTLED: Final = (STABLE, EMPTY)
_Partition = tuple[str, int]
_HOUR_US: Final = REMEMBERED_FOR // MICROSECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One change of a group between two rounds; times in microseconds since 1970-01-01 UTC."""

    observed_us: int  # the first round that saw it
    count: int  # at least so many: a group epoch may grow by several between two rounds
    joined: int | None  # members; None: the members were not known before or after it
    left: int | None
    moved_partitions: int | None  # that have another owner, or none
    epoch: int | None  # of the group afterwards (KIP-848)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastOwner:
    """The member that owned a partition which nobody owns now."""

    member_id: str
    client_id: str
    host: str
    has_left: bool  # False: it is still a member, and no longer owns the partition
    lost_us: int  # the first round that saw the partition without an owner


@dataclass(frozen=True, slots=True, kw_only=True)
class UnownedPartition:
    """A partition of a group that has no owner, and had one."""

    partition: TopicPartition
    last_owner: LastOwner


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistory:
    """What is remembered of one group."""

    rebalances: tuple[Rebalance, ...] = ()  # of the last hour, the newest last
    unowned: tuple[UnownedPartition, ...] = ()
    unsettled_since_us: int | None = None  # since when no round has seen it stable or empty
    epoch: int | None = None  # as last described
    last: Group | None = None  # as last described with all assignments known
    owning: Group | None = None  # the same, the last time it had members

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to be kept of a group that no round lists."""
        return not (self.rebalances or self.unowned)

    def rebalances_since(self, since_us: int) -> int:
        """Return how many rebalances were seen since then, at least."""
        return sum(entry.count for entry in self.rebalances if entry.observed_us >= since_us)

    def last_owner(self, partition: TopicPartition) -> LastOwner | None:
        """Return who owned a partition that nobody owns; None if that was never seen."""
        owners = (entry.last_owner for entry in self.unowned if entry.partition == partition)
        return next(owners, None)


NO_HISTORY: Final = GroupHistory()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemberMemory:
    """The histories of groups by group id."""

    groups: Mapping[str, GroupHistory] = field(default_factory=dict)

    def history_of(self, group_id: str) -> GroupHistory:
        """Return what is remembered of a group."""
        return self.groups.get(group_id, NO_HISTORY)


def advance_members(
    groups: tuple[Group, ...], now_us: int, old: MemberMemory, *, is_complete: bool
) -> MemberMemory:
    """Return the memory one round later; `is_complete` says whether every group is listed."""
    histories = {
        group.group_id: _advance(old.history_of(group.group_id), group, now_us) for group in groups
    }
    if not is_complete:
        for name, history in old.groups.items():
            if name not in histories and not (recent := _without_old(history, now_us)).is_empty:
                histories[name] = recent
    return MemberMemory(groups=histories)


def merge_members(stored: MemberMemory, seen: MemberMemory) -> MemberMemory:
    """Merge the stored histories into memory."""
    merged = dict(stored.groups)
    for name, history in seen.groups.items():
        before = stored.groups.get(name)
        merged[name] = history if before is None else _merge(before, history)
    return MemberMemory(groups=merged)


def members_with_times(memory: MemberMemory, change: Callable[[int], int]) -> MemberMemory:
    """Return the memory with changed times."""
    return MemberMemory(
        groups={name: _with_times(history, change) for name, history in memory.groups.items()}
    )


def latest_member_time(memory: MemberMemory) -> int:
    """Return the latest time in the memory, 0 where there is none."""
    return max(
        (
            max(
                history.unsettled_since_us or 0,
                max((entry.observed_us for entry in history.rebalances), default=0),
                max((entry.last_owner.lost_us for entry in history.unowned), default=0),
            )
            for history in memory.groups.values()
            if history is not NO_HISTORY
        ),
        default=0,
    )


def _advance(old: GroupHistory, group: Group, now_us: int) -> GroupHistory:
    if group is old.last and old.is_empty:
        return old
    history = _without_old(old, now_us)
    if group is history.last or group.members is None:
        return history
    unsettled_us = None
    if group.state not in SETTLED:
        unsettled_us = history.unsettled_since_us or now_us
    is_known = _is_owner_known(group)
    rebalance = _rebalance(history, group, now_us) if is_known else None
    return replace(
        history,
        rebalances=(*history.rebalances, rebalance)[-MOST_REBALANCES:]
        if rebalance is not None
        else history.rebalances,
        unowned=_unowned(history, group, now_us) if is_known and group.members else history.unowned,
        unsettled_since_us=unsettled_us,
        epoch=group.epoch if is_known or history.epoch is None else history.epoch,
        last=group if is_known else history.last,
        owning=group if is_known and group.members else history.owning,
    )


def _is_owner_known(group: Group) -> bool:
    """Whether it is certain which partitions have an owner; those of share groups have several."""
    return group.group_type is not GroupType.SHARE and is_fully_described(group)


def _rebalance(history: GroupHistory, group: Group, now_us: int) -> Rebalance | None:
    """Return what changed since the group was last fully described; None if nothing did."""
    epochs = None
    if group.epoch is not None and history.epoch is not None:
        epochs = group.epoch - history.epoch
    since_us = history.unsettled_since_us
    last = history.last
    if last is None:
        if since_us is None and not epochs:
            return None
        joined = left = moved = None
    else:
        before, after = _ids(last), _ids(group)
        joined, left = len(after - before), len(before - after)
        moved = _moved(last, group)
        if not (joined or left or moved or since_us or (epochs or 0) > 0):
            return None
    return Rebalance(
        observed_us=since_us or now_us,
        count=max(epochs or 0, 1),
        joined=joined,
        left=left,
        moved_partitions=moved,
        epoch=group.epoch,
    )


def _ids(group: Group) -> set[str]:
    return {member.member_id for member in group.members or ()}


def _owners(group: Group | None) -> dict[_Partition, Member]:
    """Return the owner of each partition, which is a pair: there may be 100,000 of them."""
    members = () if group is None else group.members or ()
    return {
        (topic, number): member
        for member in members
        for topic, numbers in member.assignment or ()
        for number in numbers
    }


def _moved(before: Group, after: Group) -> int:
    """Return how many partitions have another owner, or none, of those that had one."""
    new = _owners(after)
    return sum(
        (owner := new.get(partition)) is None or owner.member_id != member.member_id
        for partition, member in _owners(before).items()
    )


def _unowned(history: GroupHistory, group: Group, now_us: int) -> tuple[UnownedPartition, ...]:
    """Return the partitions that had an owner and have none, the members of the group being known."""
    owned, ids = _owners(group), _ids(group)
    unowned = {_pair(entry): entry for entry in history.unowned if _pair(entry) not in owned}
    for partition, member in _owners(history.owning).items():
        if partition not in owned:
            unowned[partition] = UnownedPartition(
                partition=TopicPartition(*partition),
                last_owner=LastOwner(
                    member_id=member.member_id,
                    client_id=member.client_id,
                    host=member.host,
                    has_left=member.member_id not in ids,
                    lost_us=now_us,
                ),
            )
    return tuple(unowned[name] for name in sorted(unowned))[:MOST_UNOWNED]


def _pair(entry: UnownedPartition) -> _Partition:
    return entry.partition.topic, entry.partition.partition


def _without_old(history: GroupHistory, now_us: int) -> GroupHistory:
    """Return the history without what is older than it is remembered."""
    oldest = now_us - _HOUR_US
    longest = now_us - UNOWNED_FORGOTTEN_AFTER // MICROSECOND
    if history.rebalances and history.rebalances[0].observed_us < oldest:
        recent = tuple(entry for entry in history.rebalances if entry.observed_us >= oldest)
        history = replace(history, rebalances=recent)
    if any(entry.last_owner.lost_us < longest for entry in history.unowned):
        longest_unowned = tuple(
            entry for entry in history.unowned if entry.last_owner.lost_us >= longest
        )
        history = replace(history, unowned=longest_unowned)
    return history


def _merge(stored: GroupHistory, seen: GroupHistory) -> GroupHistory:
    """Merge a stored history: what it says of partitions that have an owner again is over."""
    owned = _owners(seen.owning)
    unowned = {_pair(entry): entry for entry in stored.unowned if _pair(entry) not in owned}
    unowned |= {_pair(entry): entry for entry in seen.unowned}
    rebalances = sorted((*stored.rebalances, *seen.rebalances), key=lambda entry: entry.observed_us)
    return replace(
        seen,
        rebalances=tuple(rebalances)[-MOST_REBALANCES:],
        unowned=tuple(unowned[name] for name in sorted(unowned)),
    )


def _with_times(history: GroupHistory, change: Callable[[int], int]) -> GroupHistory:
    if history.is_empty and history.unsettled_since_us is None:
        return history
    return replace(
        history,
        rebalances=tuple(
            replace(entry, observed_us=change(entry.observed_us)) for entry in history.rebalances
        ),
        unowned=tuple(
            replace(
                entry,
                last_owner=replace(entry.last_owner, lost_us=change(entry.last_owner.lost_us)),
            )
            for entry in history.unowned
        ),
        unsettled_since_us=change_if_set(history.unsettled_since_us, change),
    )
