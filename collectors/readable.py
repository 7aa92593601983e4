"""Answers `nothing_to_read`: whether a read_committed reader would get anything more.

A group that has read everything on a transactional topic still has lag: markers and aborted records
use offsets too. A bounded look at batch headers from the committed offset on tells the difference.
It needs READ on the topic; without it the answer stays unknown. Between two offsets below the last
stable offset nothing changes any more, so that an answer is kept for as long as it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from collectors.naming import counted, listed
from collectors.range_fetch import Range, fetch
from collectors.session import Session
from collectors.wire.failure import Failure
from rules.facts.column import Bools, Column
from rules.facts.gap import GapCause
from rules.facts.groups import Commits
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions

MAX_LAG: Final = 10  # a larger lag is judged by its growth, not by looking into the log
MAX_LOOKS: Final = 4  # at one partition in one round

# topic id, partition, committed offset, last stable offset
_Key = tuple[str | None, int, int, int]


@dataclass(slots=True)
class ReadableReader:
    """Fills in `nothing_to_read`, and remembers what was found out."""

    _known: dict[_Key, bool] = field(default_factory=dict)
    _seen: set[_Key] | None = None  # the small lags of the last round, None before the first

    def _is_asked(self, key: _Key) -> bool:
        """Ask in the first round, later only for lags that have not moved since the last."""
        return key not in self._known and (self._seen is None or key in self._seen)

    def collect(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        commits: Commits,
        ask: Bools,
    ) -> Commits:
        """Return the commits with `nothing_to_read` filled in where it can be known.

        A lag of zero is true without asking. `ask` marks the commits to look into; of these only
        lags up to `MAX_LAG` are.
        """
        lag = commits.read_committed_lag(offsets)
        small = np.flatnonzero(ask & lag.valid & (lag.values > 0) & (lag.values <= MAX_LAG))
        keys = {place: _key(partitions, offsets, commits, place) for place in small.tolist()}
        self._known = {key: self._known[key] for key in keys.values() if key in self._known}
        unknown = [place for place, key in keys.items() if self._is_asked(key)]
        self._seen = set(keys.values())
        ranges = _ranges(session, partitions, offsets, commits, unknown)
        _look(session, list(ranges.values()))
        for place in unknown:
            found = ranges.get(int(commits.row[place]))
            has_records = found and found.holds_records(int(commits.committed_offset[place]))
            if has_records is not None:
                self._known[keys[place]] = not has_records
        answers: list[int | None] = [None] * len(commits)
        for place in np.flatnonzero(lag.valid & (lag.values == 0)).tolist():
            answers[place] = 1
        for place, key in keys.items():
            known = self._known.get(key)
            answers[place] = None if known is None else int(known)
        return replace(commits, nothing_to_read=Column.of(answers))


def _key(partitions: Partitions, offsets: Offsets, commits: Commits, place: int) -> _Key:
    row = int(commits.row[place])
    end = int(offsets.last_stable_offset.values[row])
    name = partitions.index.topic_partition(row)
    topic = partitions.topic_id(row) or name.topic
    return topic, name.partition, int(commits.committed_offset[place]), end


def _ranges(
    session: Session,
    partitions: Partitions,
    offsets: Offsets,
    commits: Commits,
    places: Sequence[int],
) -> dict[int, Range]:
    """Return one range per partition: from the lowest of its commits to the LSO."""
    ranges: dict[int, Range] = {}
    for place in places:
        row, committed = int(commits.row[place]), int(commits.committed_offset[place])
        leader_id, end = partitions.leader[row], offsets.last_stable_offset[row]
        epoch = offsets.leader_epoch[row]
        leader = session.broker(leader_id) if leader_id is not None else None
        if leader is None or end is None or epoch is None:
            continue  # the offsets of this partition are a gap already
        name = partitions.index.topic_partition(row)
        fresh = Range(name=name, leader=leader, leader_epoch=epoch, position=committed, end=end)
        ranges.setdefault(row, fresh).include(committed)
    return ranges


def _look(session: Session, ranges: Sequence[Range]) -> None:
    """Fetch until every range is settled, refused, or was looked at often enough."""
    for _ in range(MAX_LOOKS):
        unsettled = [found for found in ranges if not found.is_settled]
        if not unsettled:
            break
        fetch(session, unsettled)
    for failure, refused in _by_failure(ranges):
        names = [str(found.name) for found in refused]
        what = f"whether there is anything to read on {counted(len(names), 'partition')}"
        session.add_gap(f"{what} ({listed(names)})", failure)


def _by_failure(ranges: Sequence[Range]) -> Iterator[tuple[Failure, list[Range]]]:
    limit = Failure(GapCause.LIMIT, f"not settled within {MAX_LOOKS} bounded looks into the log")
    groups: dict[Failure, list[Range]] = {}
    for found in ranges:
        if found.failure is not None:
            groups.setdefault(found.failure, []).append(found)
        elif not found.is_settled:
            groups.setdefault(limit, []).append(found)
    yield from groups.items()
