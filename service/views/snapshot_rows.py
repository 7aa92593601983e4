"""A snapshot as flat rows of plain values, absent ones as None: what JSON documents are made of.

The names are a contract with scripts: they may be added to, never changed. A caller
that shows one page passes the rows of that page, and no others are built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from rules.facts.column import Column, Int64s, Ragged
from rules.facts.partitions import PartitionIndex
from rules.facts.snapshot import Snapshot
from rules.facts.times import SECOND_US
from rules.time_lag import TimeLag, TimeLags
from service.views.cluster import GroupDescription
from service.views.members import owner_columns
from service.views.model import Row
from service.views.waiting import waits_for

# Of the document of a round: a higher one has keys that mean something else than in this version.
FORMAT: Final = 1


def partition_rows(snapshot: Snapshot, rows: Int64s | None = None) -> list[Row]:
    """Return one row per partition, in the order of `rows`; without them all, in index order."""
    partitions, offsets = snapshot.partitions, snapshot.offsets
    chosen = _every(len(partitions)) if rows is None else rows
    positions, numbers = _places(partitions.index, chosen)
    columns: dict[str, Sequence[object]] = {
        "topic": [partitions.index.topics[position] for position in positions],
        "partition": numbers,
        "topic_id": [partitions.topic_ids[position] for position in positions],
        "leader": partitions.leader.take(chosen).to_list(),
        "leader_epoch": offsets.leader_epoch.take(chosen).to_list(),
        "replicas": _lists(partitions.replicas, chosen),
        "isr": _lists(partitions.isr, chosen),
        "elr": _lists(partitions.elr, chosen),
        "last_known_elr": _lists(partitions.last_known_elr, chosen),
        "min_insync_replicas": partitions.min_insync_replicas.take(chosen).to_list(),
        "log_start_offset": offsets.log_start_offset.take(chosen).to_list(),
        "last_stable_offset": offsets.last_stable_offset.take(chosen).to_list(),
        "high_watermark": offsets.high_watermark.take(chosen).to_list(),
        "log_end_offset": offsets.log_end_offset.take(chosen).to_list(),
        "replica_log_end_offsets": _replica_ends(snapshot, chosen),
    }
    return _rows(columns)


def group_rows(snapshot: Snapshot) -> list[Row]:
    """Return one row per group, with its commits ordered by topic and partition."""
    commits: list[list[Row]] = [[] for _ in snapshot.groups]
    for group, row in commit_rows(snapshot):
        commits[group].append(row)
    return [
        GroupDescription.of(group).to_row() | {"commits": own}
        for group, own in zip(snapshot.groups, commits, strict=True)
    ]


def time_lag_rows(lags: TimeLags | None, places: Int64s) -> list[Row]:
    """Return the time lags of the commits at `places`; without `lags` all of them are absent.

    `..._at_least_seconds` is a lower bound, where a commit is older than the remembered ends.
    """
    committed = None if lags is None else lags.read_committed
    uncommitted = None if lags is None else lags.read_uncommitted
    return [
        _time_lag("read_committed", committed, place)
        | _time_lag("read_uncommitted", uncommitted, place)
        for place in places.tolist()
    ]


def _time_lag(name: str, lag: TimeLag | None, place: int) -> Row:
    why = None if lag is None else lag.why(place)
    return {
        f"{name}_lag_seconds": None if lag is None else _seconds(lag.lag_us[place]),
        f"{name}_lag_at_least_seconds": None if lag is None else _seconds(lag.at_least_us[place]),
        f"{name}_lag_seconds_absent": None if why is None else str(why),
    }


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / SECOND_US


def commit_rows(snapshot: Snapshot, places: Int64s | None = None) -> list[tuple[int, Row]]:
    """Return (position of the group, row) for the commits at `places`; without them for all."""
    commits, offsets, index = snapshot.commits, snapshot.offsets, snapshot.partitions.index
    chosen = _every(len(commits)) if places is None else places
    positions, numbers = _places(index, commits.row[chosen])
    nothing_to_read = commits.nothing_to_read.take(chosen).to_list()
    columns: dict[str, Sequence[object]] = {
        "topic": [index.topics[position] for position in positions],
        "partition": numbers,
        "committed_offset": commits.committed_offset[chosen].tolist(),
        "committed_leader_epoch": commits.committed_leader_epoch.take(chosen).to_list(),
        "read_committed_lag": commits.read_committed_lag(offsets).take(chosen).to_list(),
        "read_uncommitted_lag": commits.read_uncommitted_lag(offsets).take(chosen).to_list(),
        "nothing_to_read": [None if flag is None else bool(flag) for flag in nothing_to_read],
        "waits_for": [str(reason) for reason in waits_for(snapshot, chosen)],
        **owner_columns(snapshot, chosen),
    }
    return list(zip(commits.group[chosen].tolist(), _rows(columns), strict=True))


def gaps_by_cause(snapshot: Snapshot) -> dict[str, int]:
    """Return the number of gaps of each cause that occurs, by name."""
    return {str(cause): count for cause, count in sorted(snapshot.gaps_by_cause().items())}


def _rows(columns: Mapping[str, Sequence[object]]) -> list[Row]:
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _every(rows: int) -> Int64s:
    return np.arange(rows, dtype=np.int64)


def _places(index: PartitionIndex, rows: Int64s) -> tuple[list[int], list[int]]:
    """Return the topic's position and the partition's number for each row."""
    positions = np.searchsorted(index.starts, rows, side="right") - 1
    return positions.tolist(), (rows - index.starts[positions]).tolist()


def _lists(ragged: Ragged, rows: Int64s) -> list[list[int] | None]:
    """Return the lists at `rows`, None where unknown."""
    begins, ends = ragged.starts[rows].tolist(), ragged.starts[rows + 1].tolist()
    return [
        ragged.values[begin:end].tolist() if is_known else None
        for begin, end, is_known in zip(begins, ends, ragged.valid[rows].tolist(), strict=True)
    ]


def _replica_ends(snapshot: Snapshot, rows: Int64s) -> list[dict[str, int | None] | None]:
    """Return broker id -> log end offset per row; None where followers were not queried."""
    replicas, ends = snapshot.partitions.replicas, snapshot.offsets.replica_log_end_offsets
    is_followed = (snapshot.followed[rows] & replicas.valid[rows]).tolist()
    return [
        _ends_of_row(replicas, ends, row) if is_queried else None
        for row, is_queried in zip(rows.tolist(), is_followed, strict=True)
    ]


def _ends_of_row(replicas: Ragged, ends: Column, row: int) -> dict[str, int | None]:
    own = slice(int(replicas.starts[row]), int(replicas.starts[row + 1]))
    values = zip(ends.values[own].tolist(), ends.valid[own].tolist(), strict=True)
    offsets = [value if is_known else None for value, is_known in values]
    brokers = replicas.values[own].tolist()
    return {str(broker): end for broker, end in zip(brokers, offsets, strict=True)}
