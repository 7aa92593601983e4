"""Who owned what in each group, and the rebalances of the last hour, from round to round.

A round sees a group at one moment. Between two rounds a rebalance shows as other members or another
assignment, as the state of a group that is rebalancing, or as a higher group epoch (KIP-848). One that
begins and ends between two rounds and assigns as before leaves no trace in a classic group, so that
counts are lower bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from rules.facts.column import replace_fields
from rules.facts.groups import Group, GroupType
from rules.facts.member_changes import (
    MemberChanges,
    Members,
    compare_members,
    owned_partitions,
)
from rules.facts.members import EMPTY, STABLE, Member, is_fully_described
from rules.facts.times import MICROSECOND, change_if_set
from rules.facts.unowned_partitions import (
    UnownedPartitions,
    change_times,
    join_unowned,
    lost_partitions,
    still_unowned,
)

REMEMBERED_FOR: Final = timedelta(hours=1)  # of rebalances, and of when a member joined
MOST_REBALANCES: Final = 64  # of one group, the newest
# As long as Kafka keeps commits on topics that a group no longer subscribes to.
UNOWNED_FORGOTTEN_AFTER: Final = timedelta(days=7)
SETTLED: Final = (STABLE, EMPTY)
_Id = str  # of a member: the instance id of a static one, which keeps it when it restarts
_HOUR_US: Final = REMEMBERED_FOR // MICROSECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One change of a group between two rounds; times in microseconds since 1970-01-01 UTC."""

    observed_us: int  # the first round that saw it
    count: int  # at least so many: a group epoch may grow by several between two rounds
    joined: int | None  # members; None: the members were not known before or after it
    left: int | None
    moved_partitions: int | None  # that have another owner, or none; None: owners were not known
    epoch: int | None  # of the group afterwards (KIP-848)
    short_lived: int | None = None  # of those that left: members seen joining in the hour before
    stayed: int | None = None  # members that were there before and after it; None: not known

    @property
    def is_of_members(self) -> bool:
        """Whether members joined or left."""
        return bool(self.joined or self.left)

    @property
    def disturbs_nobody(self) -> bool:
        """Whether no member was there that could have read on: a group of one begins or ends so."""
        return self.stayed == 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class GroupHistory:
    """What is remembered of one group; the same object as long as nothing of it changes."""

    rebalances: tuple[Rebalance, ...] = ()  # of the last hour, the newest last
    unowned: tuple[UnownedPartitions, ...] = ()
    unsettled_since_us: int | None = None  # since when no round has seen it stable or empty
    epoch: int | None = None  # as last described
    last: Group | None = None  # as last described while it was stable or empty
    # Its members the last time it had any, all assignments being known.
    owners: tuple[Member, ...] | None = None
    newcomers: Mapping[_Id, int] = field(default_factory=dict)  # when a member was seen joining

    @property
    def is_empty(self) -> bool:
        """Whether nothing has to be kept of a group that no round lists."""
        return not (self.rebalances or self.unowned)

    @property
    def newest_disturbing_us(self) -> int | None:
        """Return when the last rebalance was observed that may have disturbed a member."""
        times = (e.observed_us for e in reversed(self.rebalances) if not e.disturbs_nobody)
        return next(times, None)

    def disturbing_since(self, since_us: int) -> int:
        """Return how many rebalances since then may have disturbed a member, at least."""
        return sum(entry.count for entry in self._recent(since_us) if not entry.disturbs_nobody)

    def repeated_since(self, since_us: int) -> int:
        """Return how many rebalances since then no deployment explains, at least.

        In a rolling deployment each member leaves once and another one joins, and a cooperative
        group rebalances twice each time. So what counts are newcomers that leave others behind, and
        rebalances in which nobody joins or leaves and partitions move all the same, beyond one for
        each in which somebody does. Nothing moves where brokers restart: a coordinator then begins
        new epochs for the racks of the partitions alone (KIP-848), and members read on.
        """
        is_stopped = self.last is not None and not self.last.members
        recent = _without_stops(self._recent(since_us), is_stopped=is_stopped)
        of_members = sum(entry.is_of_members for entry in recent)
        others = sum(
            entry.count for entry in recent if not entry.is_of_members and entry.moved_partitions
        )
        short_lived = sum(entry.short_lived or 0 for entry in recent if not entry.disturbs_nobody)
        return short_lived + max(others - of_members, 0)

    def _recent(self, since_us: int) -> list[Rebalance]:
        return [entry for entry in self.rebalances if entry.observed_us >= since_us]


NO_HISTORY: Final = GroupHistory()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MemberMemory:
    """The histories of groups by group id."""

    groups: Mapping[str, GroupHistory] = field(default_factory=dict)

    def history_of(self, group_id: str) -> GroupHistory:
        """Return what is remembered of a group."""
        return self.groups.get(group_id, NO_HISTORY)


def advance_members(
    groups: tuple[Group, ...],
    now_us: int,
    old: MemberMemory,
    *,
    is_complete: bool,
    remembered: Collection[str] = (),
) -> MemberMemory:
    """Return the memory one round later; `is_complete` says whether every group is listed.

    If not, a group that is not listed may still have its members, as where its coordinator cannot be
    reached: as long as it is among the `remembered` ones, nothing of it is forgotten.
    """
    histories = {
        group.group_id: _advance(old.history_of(group.group_id), group, now_us) for group in groups
    }
    if not is_complete:
        for name, history in old.groups.items():
            if name not in histories:
                recent = _unlisted(history, now_us)
                if name in remembered or not recent.is_empty:
                    histories[name] = recent
    return MemberMemory(groups=histories)


def merge_members(stored: MemberMemory, seen: MemberMemory, seen_us: int) -> MemberMemory:
    """Merge the stored histories into memory; `seen_us` is the time of its newest round."""
    merged = dict(stored.groups)
    for name, history in seen.groups.items():
        before = stored.groups.get(name)
        merged[name] = history if before is None else _merge(before, history, seen_us)
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
                max(history.newcomers.values(), default=0),
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
    if group.group_type is GroupType.SHARE or group.state not in SETTLED:
        return _unsettled(history, group, now_us)
    before, changes = history.last, None
    if before is not None:
        changes = compare_members(before.members or (), group.members)
    newcomers, is_known = _recent_newcomers(history, now_us), is_fully_described(group)
    rebalance = _rebalance(history, group, changes, newcomers, now_us)
    fields: dict[str, Any] = {"unsettled_since_us": None, "epoch": group.epoch, "last": group}
    if rebalance is not None:
        fields["rebalances"] = (*history.rebalances, rebalance)[-MOST_REBALANCES:]
    if changes is not None and (changes.joined or newcomers):
        fields["newcomers"] = newcomers | dict.fromkeys(changes.joined, now_us)
    # A group without members owns nothing, which says nothing of who takes over.
    if is_known and group.members:
        of_owners = before is not None and before.members is history.owners
        unowned = _unowned(history, group.members, changes if of_owners else None, now_us)
        fields |= {"owners": group.members, "unowned": unowned}
    return replace_fields(history, **fields)


def _without_stops(rebalances: Iterable[Rebalance], *, is_stopped: bool) -> list[Rebalance]:
    """Return rebalances without those in which all members were stopped, maybe one by one."""
    kept: list[Rebalance] = []
    for entry in rebalances:
        kept.append(entry)
        if entry.disturbs_nobody and not entry.joined:
            _drop_leaves(kept)
    if is_stopped:  # which a restart of Tidemark may have missed
        _drop_leaves(kept)
    return kept


def _drop_leaves(rebalances: list[Rebalance]) -> None:
    while rebalances and not rebalances[-1].joined:
        rebalances.pop()


def _unsettled(history: GroupHistory, group: Group, now_us: int) -> GroupHistory:
    """Return the history of a group in which members wait, or share partitions."""
    is_waiting = group.state not in SETTLED
    return replace_fields(
        history,
        unsettled_since_us=(history.unsettled_since_us or now_us) if is_waiting else None,
        epoch=group.epoch if history.epoch is None else history.epoch,
    )


def _unlisted(history: GroupHistory, now_us: int) -> GroupHistory:
    """Return the history of a group that a round could not list: a rebalance may be over by now."""
    if history.unsettled_since_us is not None:
        history = replace(history, unsettled_since_us=None)
    return _without_old(history, now_us)


def _unowned(
    history: GroupHistory, members: Members, changes: MemberChanges | None, now_us: int
) -> tuple[UnownedPartitions, ...]:
    """Return what had an owner and has none, all owners now being known.

    `changes` are those since the last owners were known, None: not compared yet.
    """
    if history.owners is None:
        changes = None
    elif changes is None:
        changes = compare_members(history.owners, members)
    if not history.unowned and (changes is None or not changes.changed):
        return ()
    owned = owned_partitions(members)
    lost = () if changes is None else lost_partitions(changes, owned, now_us)
    return join_unowned(still_unowned(history.unowned, owned), lost)


def _recent_newcomers(history: GroupHistory, now_us: int) -> dict[_Id, int]:
    """Return when those members joined that are known to have joined in the last hour."""
    oldest = now_us - _HOUR_US
    return {name: at_us for name, at_us in history.newcomers.items() if at_us >= oldest}


def _rebalance(
    history: GroupHistory,
    group: Group,
    changes: MemberChanges | None,
    newcomers: Mapping[_Id, int],
    now_us: int,
) -> Rebalance | None:
    """Return what changed since the group was last described while settled; None if nothing did."""
    epochs = 0
    if group.epoch is not None and history.epoch is not None:
        epochs = max(group.epoch - history.epoch, 0)
    since_us = history.unsettled_since_us
    # A KIP-848 group also reconciles while a static member is away: that begins no epoch.
    was_rebalancing = since_us and (group.epoch is None or changes is None)
    if not (was_rebalancing or epochs) and (changes is None or changes.is_empty):
        return None
    return Rebalance(
        observed_us=since_us or now_us,
        count=max(epochs, 1),
        joined=None if changes is None else len(changes.joined),
        left=None if changes is None else len(changes.left),
        moved_partitions=None if changes is None else changes.moved_partitions,
        epoch=group.epoch,
        short_lived=None if changes is None else len(changes.left & newcomers.keys()),
        stayed=None if changes is None else len(group.members or ()) - len(changes.joined),
    )


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


def _merge(stored: GroupHistory, seen: GroupHistory, seen_us: int) -> GroupHistory:
    """Merge a stored history: what it says of partitions that have an owner again is over.

    Of who owned what before, the earlier process alone knows; what nobody owns was lost since.
    """
    rebalances = sorted((*stored.rebalances, *seen.rebalances), key=lambda entry: entry.observed_us)
    unowned, owners = stored.unowned, stored.owners
    if seen.owners is not None:
        unowned = _unowned(stored, seen.owners, None, seen_us)
        owners = seen.owners
    return replace(
        seen,
        rebalances=tuple(rebalances)[-MOST_REBALANCES:],
        unowned=join_unowned(unowned, seen.unowned),
        owners=owners,
    )


def _with_times(history: GroupHistory, change: Callable[[int], int]) -> GroupHistory:
    if history.is_empty and history.unsettled_since_us is None and not history.newcomers:
        return history
    return replace(
        history,
        rebalances=tuple(
            replace(entry, observed_us=change(entry.observed_us)) for entry in history.rebalances
        ),
        unowned=change_times(history.unowned, change),
        unsettled_since_us=change_if_set(history.unsettled_since_us, change),
        newcomers={name: change(at_us) for name, at_us in history.newcomers.items()},
    )
