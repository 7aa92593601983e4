"""Fills in `nothing_to_read`: whether a read_committed reader would get any further record.

A group that has read everything on a transactional topic still has lag: markers and aborted records
use offsets too. A bounded scan of batch headers from the committed offset on distinguishes the two: for
every small lag, and for larger ones if a rule requests it. It needs READ on the topic; without it the
answer stays unknown, and the commit says that the scan failed. Within one leader epoch nothing changes
between two offsets below the last stable offset, so that an answer is kept as long as epoch, commit and
end are the same and it is needed. After an unclean election the log may grow to the same end again,
with other records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from collectors.range_fetch import Range, fetch
from collectors.session import Session
from collectors.wire.failure import Failure
from rules.facts.column import Bools, Column, Int64s
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Commits, Group, GroupType
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.question import SMALL_LAG, ReadableQuestion

MAX_SCANS: Final = 4  # at one partition in one round
# Partitions with larger lags in one round: two requests and some megabytes.
MAX_QUERIED: Final = 500

_Place = tuple[str, int]  # topic id, or its name if brokers have no ids; partition
_Start = tuple[_Place, int]  # committed offset
_End = tuple[int, int]  # leader epoch, last stable offset
_Key = tuple[_Start, _End]


@dataclass(frozen=True, slots=True, eq=False)
class ReadableRequest:
    """Which commits to inspect, by position in the commits of the round."""

    small: Bools  # while the lag is small
    queried: Bools  # however large the lag is


def readable_request(
    partitions: Partitions,
    groups: Sequence[Group],
    commits: Commits,
    questions: Sequence[ReadableQuestion],
) -> ReadableRequest:
    """Mark the commits to inspect: those of all groups but share groups, and those that rules query.

    The start offset of a share group trails behind what is read.
    """
    is_position = np.array([group.group_type != GroupType.SHARE for group in groups], np.bool_)
    small: Bools = is_position[commits.group]
    is_queried = np.zeros(len(commits), np.bool_)
    for question in questions:
        is_queried |= question.commits.find(partitions, groups, commits) >= 0
    return ReadableRequest(small, is_queried & small)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lags:
    """The commits of one round that may be inspected."""

    partitions: Partitions
    offsets: Offsets
    row: Int64s  # of every commit
    keys: Mapping[int, _Key]  # by position of the commit

    def row_of(self, place: int) -> int:
        return int(self.row[place])

    def committed(self, place: int) -> int:
        return self.keys[place][0][1]


def _mark_expired(commits: Commits, offsets: Offsets) -> Bools:
    """Mark the commits below the log start offset: nothing can be fetched there."""
    start = offsets.log_start_offset.take(commits.row)
    expired: Bools = start.valid & (commits.committed_offset < start.values)
    return expired


@dataclass(slots=True)
class ReadableReader:
    """Fills in `nothing_to_read`, and remembers the answers."""

    _results: dict[_Key, bool] = field(default_factory=dict)
    # The small lags of the last round, whatever the epoch was; None before the first round.
    _seen: set[tuple[_Start, int]] | None = None
    # A long stretch takes some rounds: nothing to read before this offset, in this leader epoch.
    _clear: dict[_Start, tuple[int, int]] = field(default_factory=dict)
    _had_turn: set[_Start] = field(default_factory=set)
    _failed: set[_Place] = field(default_factory=set)  # where the last scan had no answer
    _last_keys: set[_Key] = field(default_factory=set)  # in the last round

    def collect(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        commits: Commits,
        request: ReadableRequest,
    ) -> Commits:
        """Return the commits with `nothing_to_read` filled in where it can be determined.

        A lag of zero needs no scan. Queried commits beyond `MAX_QUERIED` have their turn in a later
        round: until then a rule takes a larger lag for records to read, so that nothing is hidden.
        """
        lag = commits.read_committed_lag(offsets)
        waits = lag.valid & (lag.values > 0) & ~_mark_expired(commits, offsets)
        small = np.flatnonzero(waits & request.small & (lag.values <= SMALL_LAG)).tolist()
        large = np.flatnonzero(waits & request.queried & (lag.values > SMALL_LAG)).tolist()
        places = np.array([*small, *large], np.int64)
        keys = _keys(partitions, offsets, commits, places)
        lags = _Lags(partitions=partitions, offsets=offsets, row=commits.row, keys=keys)
        self._forget_unused(keys.values())
        due = [place for place in small if self._is_due(keys[place])]
        self._seen = {_drop_epoch(keys[place]) for place in small}
        waiting = [place for place in large if keys[place] not in self._results]
        chosen = [*due, *self._whose_turn(waiting, due, lags)]
        ranges = self._ranges(session, lags, chosen)
        _scan(session, list(ranges.values()))
        self._learn(ranges, lags, chosen)
        self._conclude([keys[place] for place in waiting])
        hidden = {lags.row_of(place) for place in due if keys[place] not in self._results}
        _add_gaps(session, ranges, hidden)
        return replace(
            commits, nothing_to_read=self._answers(lag, keys), scan_failed=self._failures(lag, keys)
        )

    def _is_due(self, key: _Key) -> bool:
        """Whether to scan: in the first round always, later if the lag has not moved since the last one."""
        return key not in self._results and (self._seen is None or _drop_epoch(key) in self._seen)

    def _forget_unused(self, keys: Collection[_Key]) -> None:
        """Keep the answers of this round's and the last round's keys: a commit may be unseen for a round."""
        in_use = self._last_keys.union(keys)
        self._last_keys = set(keys)
        starts = {start for start, _ in in_use}
        self._results = {key: value for key, value in self._results.items() if key in in_use}
        self._clear = {start: value for start, value in self._clear.items() if start in starts}
        self._had_turn &= starts
        self._failed &= {place for place, _ in starts}

    def _whose_turn(self, waiting: Sequence[int], due: Sequence[int], lags: _Lags) -> list[int]:
        """Return the larger lags to inspect: one per partition, those first that had no turn.

        It is the partition's highest commit, because a record after it is there for the lower ones too.
        A partition with a small lag to inspect has to wait, so that scans stay short.
        """
        highest = {lags.row_of(place): place for place in sorted(waiting, key=lags.committed)}
        for place in due:
            highest.pop(lags.row_of(place), None)

        def had_turn(place: int) -> bool:
            return lags.keys[place][0] in self._had_turn

        if all(had_turn(place) for place in highest.values()):
            self._had_turn.clear()
        turn = sorted(highest.values(), key=had_turn)[:MAX_QUERIED]
        self._had_turn.update(lags.keys[place][0] for place in turn)
        return turn

    def _ranges(self, session: Session, lags: _Lags, places: Sequence[int]) -> dict[int, Range]:
        """Return one range per partition: from the lowest of its commits to the LSO."""
        ranges: dict[int, Range] = {}
        for place in places:
            row = lags.row_of(place)
            leader = session.broker(lags.partitions.leader[row])
            epoch = lags.offsets.leader_epoch[row]
            if leader is None or epoch is None:
                continue  # the offsets of this partition are a gap already
            start, (_, end) = lags.keys[place]
            begin = self._begin(start, epoch)
            name = lags.partitions.index.topic_partition(row)
            fresh = Range(name=name, leader=leader, leader_epoch=epoch, position=begin, end=end)
            ranges.setdefault(row, fresh).include(begin)
        return ranges

    def _begin(self, start: _Start, epoch: int) -> int:
        """Return where to resume the scan; a new leader epoch may have truncated what was scanned."""
        committed = start[1]
        in_epoch, until = self._clear.get(start, (epoch, committed))
        return until if in_epoch == epoch else committed

    def _learn(self, ranges: Mapping[int, Range], lags: _Lags, places: Sequence[int]) -> None:
        for place in places:
            piece = ranges.get(lags.row_of(place))
            if piece is None:
                continue
            start, _ = key = lags.keys[place]
            if piece.failure is not None:
                self._failed.add(start[0])
                continue
            self._failed.discard(start[0])
            begin = self._begin(start, piece.leader_epoch)
            has_records = piece.holds_records(begin)
            if has_records is not None:
                self._results[key] = not has_records
            self._clear[start] = piece.leader_epoch, piece.clear_until(begin)

    def _conclude(self, keys: Sequence[_Key]) -> None:
        """Answer the lower commits of a partition if records follow a higher one."""
        highest = {
            (place, end): committed
            for (place, committed), end in keys
            if self._results.get(((place, committed), end)) is False
        }
        for (place, committed), end in keys:
            if committed < highest.get((place, end), committed):
                self._results[(place, committed), end] = False

    def _answers(self, lag: Column, keys: Mapping[int, _Key]) -> Column:
        is_zero = lag.valid & (lag.values == 0)
        answers = Column(is_zero.astype(np.int64), is_zero)
        for place, key in keys.items():
            is_drained = self._results.get(key)
            if is_drained is not None:
                answers.values[place], answers.valid[place] = int(is_drained), True
        return answers

    def _failures(self, lag: Column, keys: Mapping[int, _Key]) -> Bools:
        """Mark the commits without an answer on partitions whose last scan failed."""
        failed = np.zeros(len(lag), np.bool_)
        for place, key in keys.items():
            failed[place] = key not in self._results and key[0][0] in self._failed
        return failed


def _drop_epoch(key: _Key) -> tuple[_Start, int]:
    """Return a key without its epoch: a new leader alone is no movement."""
    start, (_, end) = key
    return start, end


def _keys(
    partitions: Partitions, offsets: Offsets, commits: Commits, places: Int64s
) -> dict[int, _Key]:
    """Return the key of each commit's answer, computed with whole columns at a time."""
    index, row = partitions.index, commits.row[places]
    topic = np.searchsorted(index.starts, row, side="right") - 1
    columns = (
        places,
        topic,
        row - index.starts[topic],
        commits.committed_offset[places],
        offsets.leader_epoch.values[row],
        offsets.last_stable_offset.values[row],
    )
    names = [
        topic_id or name for topic_id, name in zip(partitions.topic_ids, index.topics, strict=True)
    ]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        place: (((names[topic], number), start), (epoch, end))
        for place, topic, number, start, epoch, end in rows
    }


def _scan(session: Session, ranges: Sequence[Range]) -> None:
    """Fetch until every range is settled, has failed, or was scanned `MAX_SCANS` times."""
    for _ in range(MAX_SCANS):
        unsettled = [piece for piece in ranges if not piece.is_settled]
        if not unsettled:
            break
        fetch(session, unsettled)


def _add_gaps(session: Session, ranges: Mapping[int, Range], hidden: Collection[int]) -> None:
    """Add the gaps; `hidden` are the rows at which a small lag has no answer.

    The limit is a gap only there: a larger lag without an answer hides nothing.
    """
    limit = Failure(GapCause.LIMIT, f"not settled within {MAX_SCANS} bounded scans into the log")
    failed = [
        (piece.failure or limit, str(piece.name))
        for row, piece in ranges.items()
        if piece.failure is not None or row in hidden
    ]
    session.add_gaps(GapScope.READABLE, "whether there is anything to read on", failed)
