"""Fills in `nothing_to_read`: whether a read_committed reader would get any further record.

A group that has read everything on a transactional topic still has lag: markers and aborted records
use offsets too. A bounded scan of batch headers from the committed offset on distinguishes the two: for
every small lag, and for larger ones if a rule requests it. It needs READ on the topic; without it the
answer stays unknown, and the commit says that the scan failed. Within one leader epoch nothing changes
between two offsets below the last stable offset, so that an answer is kept as long as epoch, commit and
end are the same and it is needed; a restart takes over those of the process before. After an unclean
election the log may grow to the same end again, with other records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from collectors.range_fetch import Range, fetch
from collectors.readable_lags import Lags, remembered_lags
from collectors.session import Session
from collectors.wire.failure import Failure
from rules.facts.column import Bools, Column, Int64s, left_out, marked
from rules.facts.commit_keys import CommitKeys
from rules.facts.commit_memory import CommitMemory
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Commits, Group, GroupType
from rules.facts.matching import matching_rows
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.question import SMALL_LAG, ReadableQuestion

MAX_SCANS: Final = 4  # at one partition in one round
# Partitions with small lags in one round: a twentieth of a second, and in a minute every one of 10,000. Fewer
# as long as that takes more than a quarter of the rest of the round, and a tenth of a second.
MAX_SMALL: Final = 2000
LEAST_SMALL: Final = 250
SMALL_SECONDS: Final = 0.1
SMALL_SHARE: Final = 0.25
# Partitions with larger lags in one round: two requests and some megabytes.
MAX_QUERIED: Final = 500
READABLE: Final = "whether there is anything to read on"


@dataclass(frozen=True, slots=True, eq=False)
class ReadableRequest:
    """Which commits to inspect, by position in the commits of the round."""

    group_ids: tuple[str, ...]  # of the round
    small: Bools  # while the lag is small
    queried: Bools  # however large the lag is
    remembered: CommitMemory | None = None  # of an earlier process, with its answers


def readable_request(
    partitions: Partitions,
    groups: Sequence[Group],
    commits: Commits,
    questions: Sequence[ReadableQuestion],
    remembered: CommitMemory | None = None,
) -> ReadableRequest:
    """Mark the commits to inspect: those of all groups but share groups, and those that rules query.

    The start offset of a share group trails behind what is read.
    """
    is_position = np.array([group.group_type != GroupType.SHARE for group in groups], np.bool_)
    small: Bools = is_position[commits.group]
    is_queried = np.zeros(len(commits), np.bool_)
    for question in questions:
        is_queried |= question.commits.find(partitions, groups, commits) >= 0
    group_ids = tuple(group.group_id for group in groups)
    return ReadableRequest(group_ids, small, is_queried & small, remembered)


def _mark_expired(commits: Commits, offsets: Offsets) -> Bools:
    """Mark the commits below the log start offset: nothing can be fetched there."""
    start = offsets.log_start_offset.take(commits.row)
    expired: Bools = start.valid & (commits.committed_offset < start.values)
    return expired


@dataclass(slots=True)
class ReadableReader:
    """Fills in `nothing_to_read`, and remembers the answers."""

    _number: int = 0  # of the round
    _most: int = MAX_SMALL  # partitions with small lags in the next round
    _lags: Lags = field(default_factory=Lags.none)
    _partitions: Partitions = field(default_factory=Partitions.none)
    # By row: the last scan had no answer.
    _has_failed: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))

    def collect(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        commits: Commits,
        request: ReadableRequest,
    ) -> Commits:
        """Return the commits with `nothing_to_read` filled in where it can be determined.

        A lag of zero needs no scan. What is beyond the limits of a round has its turn in a later one: of a
        small lag that is a gap until then, while a rule takes a larger one for records to read, so that
        nothing is hidden.
        """
        self._number += 1
        if self._number == 1 and request.remembered is not None:
            self._lags = remembered_lags(request.remembered)
        lag = commits.read_committed_lag(offsets)
        is_small: Bools = lag.values <= SMALL_LAG
        waits = lag.valid & (lag.values > 0) & ~_mark_expired(commits, offsets)
        waits &= np.where(is_small, request.small, request.queried)
        places = np.flatnonzero(waits).astype(np.int64)
        keys = CommitKeys(
            partitions=partitions,
            group_ids=request.group_ids,
            group=commits.group[places],
            row=commits.row[places],
        )
        committed = commits.committed_offset[places]
        fresh = Lags.of(keys, offsets, committed, is_small=is_small[places], number=self._number)
        at = self._lags.find_keys(fresh)
        lags = fresh.recalled(self._lags, at)
        self._move_to(partitions, lags.row)
        begin = session.took_seconds
        lags = self._scan(session, lags)
        self._set_pace(session.took_seconds - begin, others=begin)
        self._lags = lags.with_unseen(self._lags, at, self._number)
        return _answered(commits, lag, places, lags, self._has_failed)

    def _set_pace(self, spent: float, *, others: float) -> None:
        """Scan less in the next round if this one spent long, beside so many seconds for all others."""
        limit = max(SMALL_SECONDS, SMALL_SHARE * others)
        if spent > limit:
            self._most = max(self._most // 2, LEAST_SMALL)
        elif spent < limit / 2:
            self._most = min(self._most * 2, MAX_SMALL)

    def _move_to(self, partitions: Partitions, rows: Int64s) -> None:
        """Keep what failed on the partitions that have a lag to scan."""
        if partitions is not self._partitions:
            old = matching_rows(partitions, self._partitions, needs_id=False)
            self._has_failed = Column.known(self._has_failed.astype(np.int64)).take(old).values == 1
            self._partitions = partitions
        self._has_failed &= ~left_out(len(partitions), rows)

    def _scan(self, session: Session, lags: Lags) -> Lags:
        """Scan for the lags whose turn it is; return all of them with their answers."""
        is_unknown = ~lags.answer.valid
        due = np.flatnonzero(is_unknown & lags.is_small & (lags.is_unmoved | (self._number == 1)))
        larger = np.flatnonzero(is_unknown & ~lags.is_small)
        small = _whose_turn(lags, due, self._most)
        # A partition with a small lag to scan for waits with its larger ones, so that scans stay short.
        others = larger[~np.isin(lags.row[larger], lags.row[small])]
        chosen = np.concatenate([small, _whose_turn(lags, _highest(lags, others), MAX_QUERIED)])
        ranges = _ranges(session, lags, chosen)
        _fetch_all(session, list(ranges.values()))
        lags = _conclude(self._learn(lags, ranges, chosen), larger)
        hidden = due[~lags.answer.valid[due]]
        is_late = ~np.isin(hidden, small)
        _add_gaps(session, ranges, set(lags.row[hidden[~is_late]].tolist()))
        _add_late(session, lags, hidden[is_late], self._most)
        return lags

    def _learn(self, lags: Lags, ranges: Mapping[int, Range], chosen: Int64s) -> Lags:
        answers, clear = _copy(lags.answer), _copy(lags.clear_until)
        clear_epoch, turn = lags.clear_epoch.copy(), lags.turn.copy()
        turn[chosen] = self._number
        for place, row in zip(chosen.tolist(), lags.row[chosen].tolist(), strict=True):
            piece = ranges.get(row)
            if piece is None:
                continue
            self._has_failed[row] = piece.failure is not None
            if piece.failure is not None:
                continue
            begin = _begin(lags, place, piece.leader_epoch)
            has_records = piece.holds_records(begin)
            if has_records is not None:
                answers.values[place], answers.valid[place] = int(not has_records), True
            clear.values[place], clear.valid[place] = piece.clear_until(begin), True
            clear_epoch[place] = piece.leader_epoch
        return replace(lags, answer=answers, clear_until=clear, clear_epoch=clear_epoch, turn=turn)


def _copy(column: Column) -> Column:
    return Column(column.values.copy(), column.valid.copy())


def _whose_turn(lags: Lags, places: Int64s, most: int) -> Int64s:
    """Return the lags on so many partitions, on those first whose turn was the longest ago."""
    rows, inverse = np.unique(lags.row[places], return_inverse=True)
    if len(rows) <= most:
        return places
    last = np.zeros(len(rows), np.int64)
    np.maximum.at(last, inverse, lags.turn[places])
    is_chosen = marked(len(rows), np.argsort(last, kind="stable")[:most].tolist())
    chosen: Int64s = places[is_chosen[inverse]]
    return chosen


def _highest(lags: Lags, places: Int64s) -> Int64s:
    """Return of each partition the highest commit: a record after it is there for the lower ones too."""
    order = places[np.lexsort((lags.committed[places], lags.row[places]))]
    is_last = np.diff(lags.row[order], append=-1) != 0
    highest: Int64s = order[is_last]
    return highest


def _ranges(session: Session, lags: Lags, places: Int64s) -> dict[int, Range]:
    """Return one range per partition, by its row: from the lowest of its commits to the LSO."""
    partitions, ranges = lags.partitions, dict[int, Range]()
    for place, row in zip(places.tolist(), lags.row[places].tolist(), strict=True):
        leader, epoch = session.broker(partitions.leader[row]), lags.epoch[place]
        if leader is None or not lags.has_epoch[place]:
            continue  # the offsets of this partition are a gap already
        begin = _begin(lags, place, int(epoch))
        piece = ranges.get(row)
        if piece is None:
            piece = ranges[row] = Range(
                name=partitions.index.topic_partition(row),
                leader=leader,
                leader_epoch=int(epoch),
                position=begin,
                end=int(lags.end[place]),
            )
        piece.include(begin)
    return ranges


def _begin(lags: Lags, place: int, epoch: int) -> int:
    """Return where to resume the scan; a new leader epoch may have truncated what was scanned."""
    until = lags.clear_until[place]
    resumes = until is not None and lags.clear_epoch[place] == epoch
    return int(lags.committed[place]) if until is None or not resumes else until


def _conclude(lags: Lags, larger: Int64s) -> Lags:
    """Answer the lower of the larger lags of a partition if records follow a higher one."""
    has_records = larger[lags.answer.valid[larger] & (lags.answer.values[larger] == 0)]
    if not len(has_records):
        return lags
    highest = np.full(len(lags.partitions), -1, np.int64)
    np.maximum.at(highest, lags.row[has_records], lags.committed[has_records])
    lower = larger[lags.committed[larger] < highest[lags.row[larger]]]
    answer = _copy(lags.answer)
    answer.values[lower], answer.valid[lower] = 0, True
    return replace(lags, answer=answer)


def _answered(
    commits: Commits, lag: Column, places: Int64s, lags: Lags, has_failed: Bools
) -> Commits:
    """Return the commits with the answers, and a mark where there is none because a scan failed."""
    is_zero = lag.valid & (lag.values == 0)
    answers = Column(is_zero.astype(np.int64), is_zero)
    answers.values[places], answers.valid[places] = lags.answer.values, lags.answer.valid
    failed = np.zeros(len(lag), np.bool_)
    failed[places] = ~lags.answer.valid & has_failed[lags.row]
    return replace(commits, nothing_to_read=answers, scan_failed=failed)


def _fetch_all(session: Session, ranges: Sequence[Range]) -> None:
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
    session.add_gaps(GapScope.READABLE, READABLE, failed)


def _add_late(session: Session, lags: Lags, places: Int64s, most: int) -> None:
    """Add a gap of the small lags that wait for a later round."""
    limit = Failure(GapCause.LIMIT, f"this round scans {most:,} partitions at most")
    name = lags.partitions.index.topic_partition
    late = [(limit, str(name(row))) for row in np.unique(lags.row[places]).tolist()]
    session.add_gaps(GapScope.READABLE, READABLE, late)
