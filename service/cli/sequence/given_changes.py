"""Changes of leader that were not clean, as given lines tell them: those of a controller, and those of
a leader that came back and cut its log.

Nobody watched: what such a change left is known only as far as the lines say it.
Source: the brokers' log lines after 14 losses on Kafka 4.1; KIP-101.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from rules.facts.broker_log import (
    FollowerStarted,
    IsrUpdated,
    LogEvent,
    LogTruncated,
    UncleanChange,
    WatermarkWentBack,
)
from rules.facts.episodes import ChangeKind, LeaderChange
from rules.facts.identity import BrokerId
from rules.facts.last_observation import microseconds
from rules.facts.rejections import Rejection
from rules.sequence.between import lies_between
from rules.sequence.numbers import is_behind
from rules.sequence.words import COPY_DISK, KEEP_DISK

# What to do instead of keeping a broker down that has come back already.
CAME_BACK: Final = (
    "The broker that led before has come back and has cut away what it alone had: its disk has no copy "
    "any more. Have the producer write the records again only when its `delivery.timeout.ms` (120 s by "
    "default) has passed since the last rejection: until then it may still send them itself, and they "
    "would be there twice."
)
CUT_AWAY: Final = (
    "The broker that led before has come back and has cut away what its new leader does not have: its "
    "disk has no copy any more. Whether any of it was acknowledged is not proven: have nothing written "
    "again until it is (`tidemark loss ls`)."
)
AFTER_RETURN: Final = {KEEP_DISK: CAME_BACK, COPY_DISK: CUT_AWAY}
BAD: Final = (ChangeKind.LOST, ChangeKind.UNCLEAN)

_ByReplica: TypeAlias = FollowerStarted | IsrUpdated | WatermarkWentBack


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """What a replica that came back had beyond its new leader, [start, end), and cut away."""

    start: int
    end: int
    epoch: int  # in which its log had gone on alone
    followed: FollowerStarted
    is_committed: bool  # it sets back its own high watermark
    alone: IsrUpdated | None  # since when what it alone had was acknowledged, as it wrote itself


def describe_changes(lines: Sequence[LogEvent], now_us: int) -> tuple[LeaderChange, ...]:
    """Return what lines about one partition tell, ascending by leader epoch.

    `now_us` means the time of a line that tells none.
    """
    changes: dict[int, LeaderChange] = {}
    for event in lines:
        change = _of_controller(event, now_us) if isinstance(event, UncleanChange) else None
        if change is not None:
            known = changes.get(change.leader_epoch)
            changes[change.leader_epoch] = change if known is None else _joined(known, change)
    for cut in _cuts(lines):
        settled = _settled(_before(changes.values(), cut), cut, now_us)
        if settled is not None:
            changes[settled.leader_epoch] = settled
    return tuple(changes[epoch] for epoch in sorted(changes))


def check_after(check: str, changes: Iterable[LeaderChange]) -> str:
    """Return what to do, where lines tell that the leader before has come back."""
    is_back = any(change.lost_to is not None for change in changes)
    return AFTER_RETURN.get(check, check) if is_back else check


def bad_between(
    changes: Iterable[LeaderChange], rejections: Iterable[Rejection]
) -> Rejection | None:
    """Return the first rejection before which a change is known to lie that may have lost records."""
    bad = [change for change in changes if change.kind in BAD]
    return next(
        (
            rejection
            for rejection in rejections
            if not is_behind(rejection) and any(lies_between(change, rejection) for change in bad)
        ),
        None,
    )


# ------------------------------------------------------------------ the controller's lines
def _of_controller(event: UncleanChange, now_us: int) -> LeaderChange | None:
    """Return what one of its lines tells; None: not of which leader epoch it is."""
    if event.leader_epoch is None:
        return None
    is_after_leader = event.leader_before is not None
    before = event.former_leaders
    return LeaderChange(
        leader_epoch=event.leader_epoch,
        kind=ChangeKind.NOT_KNOWN if event.is_of_last_known else ChangeKind.UNCLEAN,
        leader=event.leader,
        leader_before=before[0] if len(before) == 1 else None,
        # Each new leader has the next epoch.
        leader_epoch_before=event.leader_epoch - 1 if is_after_leader else None,
        last_observation_us=None,
        epoch_end=None,
        lost_from=None,
        lost_to=None,
        seen_us=_time(event, now_us),
    )


def _joined(one: LeaderChange, other: LeaderChange) -> LeaderChange:
    """Return two lines about one election as one: a controller that starts tells it again, later."""
    first, later = sorted((one, other), key=lambda change: change.seen_us)
    is_of_last_known = ChangeKind.NOT_KNOWN in (one.kind, other.kind)
    told = first if first.leader_before is not None else later
    return replace(
        first,
        kind=ChangeKind.NOT_KNOWN if is_of_last_known else ChangeKind.UNCLEAN,
        leader_before=told.leader_before,
        leader_epoch_before=told.leader_epoch_before,
    )


# ------------------------------------------------------------------ those of a leader that came back
def _settled(change: LeaderChange | None, cut: _Cut, now_us: int) -> LeaderChange | None:
    """Return a change with what the cut tells of it; None: the cut of a clean change.

    A clean one leaves what was committed; what else a replica had nobody was told of.
    """
    if change is None:
        if not cut.is_committed and cut.alone is None:
            return None
        change = _unheard(cut, now_us)
    alone = cut.alone
    return replace(
        change,
        kind=ChangeKind.LOST if cut.is_committed else change.kind,
        leader_before=_leader_before(change, cut),
        last_observation_us=None if alone is None else _time(alone, now_us),
        epoch_end=cut.start,
        lost_from=cut.start,
        lost_to=cut.end,
    )


def _leader_before(change: LeaderChange, cut: _Cut) -> BrokerId | None:
    """Return who led before: whoever was alone in sync."""
    if change.leader_before is not None or cut.alone is None:
        return change.leader_before
    return cut.alone.origin.broker_id


def _unheard(cut: _Cut, now_us: int) -> LeaderChange:
    """Return a change of which no controller's line was given."""
    return LeaderChange(
        leader_epoch=cut.followed.leader_epoch,
        kind=ChangeKind.NOT_KNOWN,
        leader=cut.followed.leader,
        leader_before=None,
        leader_epoch_before=None,
        last_observation_us=None,
        epoch_end=None,
        lost_from=None,
        lost_to=None,
        seen_us=_time(cut.followed, now_us),
    )


def _before(changes: Iterable[LeaderChange], cut: _Cut) -> LeaderChange | None:
    """Return the latest change between the epoch that was cut and the one that is followed."""
    fitting = [
        change for change in changes if cut.epoch < change.leader_epoch <= cut.followed.leader_epoch
    ]
    return max(fitting, key=lambda one: one.leader_epoch, default=None)


def _cuts(lines: Sequence[LogEvent]) -> Iterator[_Cut]:
    for event in lines:
        if not isinstance(event, LogTruncated) or event.epoch is None:
            continue
        own = [
            line
            for line in lines
            if isinstance(line, (FollowerStarted, IsrUpdated, WatermarkWentBack))
            and _is_same_replica(line, event)
        ]
        starts = [
            one
            for one in own
            if isinstance(one, FollowerStarted)
            and one.leader_epoch > event.epoch
            and _precedes(one, event)
        ]
        followed = max(starts, key=lambda one: _time(one, 0), default=None)
        is_cut = followed is not None and followed.log_end_offset > event.offset
        if followed is not None and is_cut and event.epoch_end == event.offset:
            yield _cut(event, event.epoch, followed, own)


def _cut(
    event: LogTruncated, epoch: int, followed: FollowerStarted, own: Iterable[_ByReplica]
) -> _Cut:
    watermarks, updates = list[int](), list[IsrUpdated]()
    for one in own:
        if isinstance(one, WatermarkWentBack) and one.offset == event.offset < one.offset_before:
            watermarks.append(one.offset_before)
        if isinstance(one, IsrUpdated) and _precedes(one, followed):
            updates.append(one)
    last = max(updates, key=lambda one: _time(one, 0), default=None)
    return _Cut(
        start=event.offset,
        end=followed.log_end_offset,
        epoch=epoch,
        followed=followed,
        is_committed=bool(watermarks),
        alone=last if last is not None and len(last.isr) == 1 else None,
    )


def _is_same_replica(one: LogEvent, other: LogEvent) -> bool:
    """Whether two lines are of one broker; a log line that does not tell is of its file."""
    first, second = one.origin.broker_id, other.origin.broker_id
    return one.origin.source == other.origin.source if None in (first, second) else first == second


def _precedes(one: LogEvent, other: LogEvent) -> bool:
    """Whether a line is not later; where no time is told, it is taken to be so."""
    at, other_at = one.origin.at, other.origin.at
    return at is None or other_at is None or at <= other_at


def _time(event: LogEvent, otherwise: int) -> int:
    return otherwise if event.origin.at is None else microseconds(event.origin.at)
