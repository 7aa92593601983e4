"""Unclean leader changes, read from pasted lines: of a controller, and of a former leader that came
back and truncated its log.

No service observed the change: its consequences are known only as far as the lines state them.
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

# The advice if the broker, which should have stayed down, has come back already.
CAME_BACK: Final = (
    "The former leader has come back and has truncated the records that it alone had: its disk has no "
    "copy any more. Have the producer write the records again only when its `delivery.timeout.ms` (120 s by "
    "default) has passed since the last rejection: until then it may still send them itself, and they "
    "would be duplicated."
)
CUT_AWAY: Final = (
    "The former leader has come back and has truncated the records that the new leader does not have: "
    "its disk has no copy any more. It is not proven that any of them were acknowledged: write nothing "
    "again until it is (`tidemark loss ls`)."
)
AFTER_RETURN: Final = {KEEP_DISK: CAME_BACK, COPY_DISK: CUT_AWAY}
BAD: Final = (ChangeKind.LOST, ChangeKind.UNCLEAN)

_ByReplica: TypeAlias = FollowerStarted | IsrUpdated | WatermarkWentBack


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """Records [start, end) that a returned replica had beyond its new leader, and truncated."""

    start: int
    end: int
    epoch: int  # in which it had appended alone
    followed: FollowerStarted
    is_committed: bool  # its own high watermark went back
    alone: IsrUpdated | None  # its own line that it was the only in-sync replica


def describe_changes(lines: Sequence[LogEvent], now_us: int) -> tuple[LeaderChange, ...]:
    """Return the leader changes that lines about one partition show, by ascending leader epoch.

    `now_us` is used for lines without a time.
    """
    changes: dict[int, LeaderChange] = {}
    for event in lines:
        change = _of_controller(event, now_us) if isinstance(event, UncleanChange) else None
        if change is not None:
            earlier = changes.get(change.leader_epoch)
            changes[change.leader_epoch] = (
                change if earlier is None else _merge_lines(earlier, change)
            )
    for cut in _cuts(lines):
        settled = _apply_cut(_before(changes.values(), cut), cut, now_us)
        if settled is not None:
            changes[settled.leader_epoch] = settled
    return tuple(changes[epoch] for epoch in sorted(changes))


def check_after(check: str, changes: Iterable[LeaderChange]) -> str:
    """Return the advice, changed if lines show that the former leader has come back."""
    is_back = any(change.lost_to is not None for change in changes)
    return AFTER_RETURN.get(check, check) if is_back else check


def find_bad_change(
    changes: Iterable[LeaderChange], rejections: Iterable[Rejection]
) -> Rejection | None:
    """Return the first rejection that follows a leader change that may have lost records."""
    bad = [change for change in changes if change.kind in BAD]
    return next(
        (
            rejection
            for rejection in rejections
            if not is_behind(rejection) and any(lies_between(change, rejection) for change in bad)
        ),
        None,
    )


def _of_controller(event: UncleanChange, now_us: int) -> LeaderChange | None:
    """Return the leader change of one line; None if the line has no leader epoch."""
    if event.leader_epoch is None:
        return None
    before = event.former_leaders
    is_after_leader = event.leader_before is not None
    return replace(
        _change(event.leader_epoch, event.leader, _time(event, now_us)),
        kind=ChangeKind.NOT_KNOWN if event.is_of_last_known else ChangeKind.UNCLEAN,
        leader_before=before[0] if len(before) == 1 else None,
        # Each new leader has the next epoch.
        leader_epoch_before=event.leader_epoch - 1 if is_after_leader else None,
    )


def _change(leader_epoch: int, leader: BrokerId | None, seen_us: int) -> LeaderChange:
    """Return a change of which no more is known."""
    return LeaderChange(
        leader_epoch=leader_epoch,
        kind=ChangeKind.NOT_KNOWN,
        leader=leader,
        leader_before=None,
        leader_epoch_before=None,
        last_observation_us=None,
        epoch_end=None,
        lost_from=None,
        lost_to=None,
        seen_us=seen_us,
    )


def _merge_lines(line: LeaderChange, other: LeaderChange) -> LeaderChange:
    """Merge two lines about one election: a controller that starts logs it again, later."""
    first, later = sorted((line, other), key=lambda change: change.seen_us)
    is_of_last_known = ChangeKind.NOT_KNOWN in (line.kind, other.kind)
    source = first if first.leader_before is not None else later
    return replace(
        first,
        kind=ChangeKind.NOT_KNOWN if is_of_last_known else ChangeKind.UNCLEAN,
        leader_before=source.leader_before,
        leader_epoch_before=source.leader_epoch_before,
    )


def _apply_cut(change: LeaderChange | None, cut: _Cut, now_us: int) -> LeaderChange | None:
    """Return a change with the facts of the cut; None: the cut belongs to a clean change.

    A clean change keeps committed records; other records of the replica were never acknowledged.
    """
    if change is None:
        if not cut.is_committed and cut.alone is None:
            return None
        # There is no controller's line.
        followed = cut.followed
        change = _change(followed.leader_epoch, followed.leader, _time(followed, now_us))
    before, alone = change.leader_before, cut.alone
    if before is None and alone is not None:
        before = alone.origin.broker_id  # the replica that was alone in sync
    return replace(
        change,
        kind=ChangeKind.LOST if cut.is_committed else change.kind,
        leader_before=before,
        last_observation_us=None if alone is None else _time(alone, now_us),
        epoch_end=cut.start,
        lost_from=cut.start,
        lost_to=cut.end,
    )


def _before(changes: Iterable[LeaderChange], cut: _Cut) -> LeaderChange | None:
    """Return the latest change between the epoch of the cut and the epoch that is followed."""
    fitting = [
        change for change in changes if cut.epoch < change.leader_epoch <= cut.followed.leader_epoch
    ]
    return max(fitting, key=lambda candidate: candidate.leader_epoch, default=None)


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
            own_line
            for own_line in own
            if isinstance(own_line, FollowerStarted)
            and own_line.leader_epoch > event.epoch
            and _precedes(own_line, event)
        ]
        followed = max(starts, key=lambda own_line: _time(own_line, 0), default=None)
        is_cut = followed is not None and followed.log_end_offset > event.offset
        if followed is not None and is_cut and event.epoch_end == event.offset:
            yield _cut(event, event.epoch, followed, own)


def _cut(
    event: LogTruncated, epoch: int, followed: FollowerStarted, own: Iterable[_ByReplica]
) -> _Cut:
    watermarks, updates = list[int](), list[IsrUpdated]()
    for line in own:
        if isinstance(line, WatermarkWentBack) and line.offset == event.offset < line.offset_before:
            watermarks.append(line.offset_before)
        if isinstance(line, IsrUpdated) and _precedes(line, followed):
            updates.append(line)
    last = max(updates, key=lambda line: _time(line, 0), default=None)
    return _Cut(
        start=event.offset,
        end=followed.log_end_offset,
        epoch=epoch,
        followed=followed,
        is_committed=bool(watermarks),
        alone=last if last is not None and len(last.isr) == 1 else None,
    )


def _is_same_replica(line: LogEvent, other: LogEvent) -> bool:
    """Whether two lines are of one broker; without a broker id they are compared by file."""
    first, second = line.origin.broker_id, other.origin.broker_id
    return line.origin.source == other.origin.source if None in (first, second) else first == second


def _precedes(line: LogEvent, other: LogEvent) -> bool:
    """Whether a line is not later than another; True if one of them has no time."""
    at, other_at = line.origin.at, other.origin.at
    return at is None or other_at is None or at <= other_at


def _time(event: LogEvent, otherwise: int) -> int:
    return otherwise if event.origin.at is None else microseconds(event.origin.at)
