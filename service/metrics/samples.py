"""The samples of every metric of a round: what was observed of the cluster, and Tidemark itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from rules import names
from rules.facts.column import Column, Ragged
from rules.facts.durations import Durations
from rules.facts.groups import Group
from rules.facts.identity import BrokerId
from rules.facts.snapshot import Snapshot
from rules.facts.times import SECOND_US
from rules.facts.transaction_log import Outcome
from rules.names import Metric
from rules.time_lag import TimeLag, TimeLags
from service.metrics.changing_series import changing_series
from service.metrics.ended_transactions import EndedTransactions, MarkersOf
from service.metrics.lines import (
    CLOSE,
    Histogram,
    Samples,
    Values,
    by_label,
    closed,
    column_lines,
    label,
    samples_of_values,
    shared_label,
    single,
)
from service.metrics.log_stats import SequenceStats
from service.metrics.open_transactions import OpenTransactions
from service.metrics.own_samples import own_samples
from service.metrics.selection import DropReason
from service.metrics.table import SeriesTable
from service.metrics.totals import CostStats, SelfMetrics

MS_PER_SECOND: Final = 1000


_PARTITION_METRICS: Final = frozenset(names.PARTITION_METRICS)
_COMMIT_METRICS: Final = frozenset(names.COMMIT_METRICS)


def _lengths(lists: Ragged) -> Column:
    return Column(np.where(lists.valid, lists.lengths, 0), lists.valid)


def _has_leader(snapshot: Snapshot) -> Column:
    """Return 1 where there is a leader, 0 where not; absent for partitions that the answer left out."""
    placed = snapshot.described
    return Column.known(placed.leader.valid.astype(np.int64)).where(placed.replicas.valid)


PARTITION_COLUMNS: Final[Mapping[Metric, Callable[[Snapshot], Column]]] = {
    names.LOG_START_OFFSET: lambda seen: seen.offsets.log_start_offset,
    names.LAST_STABLE_OFFSET: lambda seen: seen.offsets.last_stable_offset,
    names.HIGH_WATERMARK: lambda seen: seen.offsets.high_watermark,
    names.LOG_END_OFFSET: lambda seen: seen.offsets.log_end_offset,
    names.LEADER_EPOCH: lambda seen: seen.offsets.leader_epoch,
    names.OPEN_SPAN: lambda seen: seen.offsets.open_span,
    names.UNREPLICATED_SPAN: lambda seen: seen.offsets.unreplicated_span,
    names.IN_SYNC_REPLICAS: lambda seen: _lengths(seen.described.isr),
    names.REPLICAS: lambda seen: _lengths(seen.partitions.replicas),
    names.MIN_INSYNC_REPLICAS: lambda seen: seen.partitions.min_insync_replicas,
    names.HAS_LEADER: _has_leader,
}

COMMIT_COLUMNS: Final[Mapping[Metric, Callable[[Snapshot], Column]]] = {
    names.COMMITTED_OFFSET: lambda seen: Column.known(seen.commits.committed_offset),
    names.READ_COMMITTED_LAG: lambda seen: seen.commits.read_committed_lag(seen.offsets),
    names.READ_UNCOMMITTED_LAG: lambda seen: seen.commits.read_uncommitted_lag(seen.offsets),
    names.NOTHING_TO_READ: lambda seen: seen.commits.nothing_to_read,
}

TIME_LAGS: Final[Mapping[Metric, Callable[[TimeLags], TimeLag]]] = {
    names.READ_COMMITTED_LAG_SECONDS: lambda lags: lags.read_committed,
    names.READ_UNCOMMITTED_LAG_SECONDS: lambda lags: lags.read_uncommitted,
}


def write_samples(
    snapshot: Snapshot,
    totals: SelfMetrics,
    table: SeriesTable,
    transactions: OpenTransactions,
    lags: TimeLags | None = None,
) -> Iterator[tuple[Metric, bytes]]:
    """Yield the sample lines of every metric, in the order of `names.METRICS`; some are empty.

    The lines of one metric may be some megabytes, so that they are written when they are taken.
    """
    values = _cluster_values(snapshot, transactions)
    values |= _event_values(totals.ended, totals.sequences) | _cost_values(totals.costs)
    changing = changing_series(snapshot, table)
    dropped = Counter(table.selection.dropped)
    dropped.update(changing.dropped)
    dropped[DropReason.LIMIT] += totals.baseline.dropped_series
    own = own_samples(snapshot.cluster, totals, snapshot, dropped)
    groups = _group_samples(snapshot, table)
    samples = changing.samples | groups | samples_of_values(values, snapshot.cluster) | own
    shared = shared_label("cluster", snapshot.cluster)
    for metric in names.METRICS:
        if metric in _PARTITION_METRICS:
            yield metric, _partition_lines(metric, shared, snapshot, table, transactions)
        elif metric in _COMMIT_METRICS:
            yield metric, _commit_lines(metric, shared, snapshot, table, lags)
        else:
            yield metric, samples.get(metric, b"")


def blind_samples(cluster: str, totals: SelfMetrics) -> Samples:
    """Return the lines of a round without a snapshot: no value of the cluster is repeated as if current.

    Counters are still exposed: they count what happened so far.
    """
    happened = _event_values(totals.ended, totals.sequences.after(None))
    return samples_of_values(happened, cluster) | own_samples(cluster, totals)


def _partition_lines(
    metric: Metric,
    shared: bytes,
    snapshot: Snapshot,
    table: SeriesTable,
    open_: OpenTransactions,
) -> bytes:
    is_age = metric is names.LAST_STABLE_OFFSET_AGE
    column = open_.held_ms if is_age else PARTITION_COLUMNS[metric](snapshot)
    shown = column.take(table.selection.rows)
    return column_lines(metric, shared, table.row_labels, shown, MS_PER_SECOND if is_age else 1)


def _commit_lines(
    metric: Metric,
    shared: bytes,
    snapshot: Snapshot,
    table: SeriesTable,
    lags: TimeLags | None,
) -> bytes:
    column, steps = _of_commits(metric, snapshot, lags)
    shown = column.take(table.selection.commits)
    return column_lines(metric, shared, table.commit_labels, shown, steps)


def _of_commits(metric: Metric, snapshot: Snapshot, lags: TimeLags | None) -> tuple[Column, int]:
    """Return the values of a metric, and how many of their steps make one of its unit."""
    if metric not in TIME_LAGS:
        return COMMIT_COLUMNS[metric](snapshot), 1
    if lags is None:
        return Column.absent(len(snapshot.commits)), SECOND_US
    return TIME_LAGS[metric](lags).lag_us, SECOND_US


def _group_samples(snapshot: Snapshot, table: SeriesTable) -> Samples:
    shown = [snapshot.groups[position] for position in table.selection.groups.tolist()]
    members = Column.of(group.member_count for group in shown)
    always = Column.known(np.ones(len(shown), np.int64))
    infos = [_info(name, group) for name, group in zip(table.group_labels, shown, strict=True)]
    shared, plain = shared_label("cluster", snapshot.cluster), closed(table.group_labels)
    return {
        names.GROUP_MEMBERS: column_lines(names.GROUP_MEMBERS, shared, plain, members),
        names.GROUP_INFO: column_lines(names.GROUP_INFO, shared, infos, always),
    }


def _info(name: bytes, group: Group) -> bytes:
    pieces = [name, label("type", group.group_type)]
    if group.state is not None:
        pieces.append(label("state", group.state))
    return b",".join(pieces) + CLOSE


def _cluster_values(snapshot: Snapshot, open_: OpenTransactions) -> dict[Metric, Values]:
    """Return the values of the cluster; a class of transactions that cannot be known has none."""
    controller = snapshot.controller
    return {
        names.BROKERS: single(len(snapshot.brokers)),
        names.CONTROLLER_INFO: []
        if controller is None
        else [({"controller_id": str(controller)}, 1)],
        names.OPEN_TRANSACTIONS: by_label("class", open_.counts),
        names.OLDEST_TRANSACTION: by_label("class", open_.age_seconds),
    }


def _event_values(ended: EndedTransactions, rejected: SequenceStats) -> dict[Metric, Values]:
    """Return the values of counters about Kafka."""
    return {
        **_ended_values(ended),
        names.SEQUENCE_REJECTIONS: single(rejected.rejections),
        names.SEQUENCE_EPISODES: [
            ({"class": class_, "phase": phase}, n)
            for (class_, phase), n in rejected.episodes.items()
        ],
    }


def _ended_values(transactions: EndedTransactions) -> dict[Metric, Values]:
    """Return the values of ended transactions; none while the log may not be read."""
    if not transactions.is_known:
        return dict.fromkeys(names.ENDED_METRICS, ())
    return {
        names.TRANSACTION_DURATION: _histograms(transactions.durations),
        names.MARKER_DURATION: _marker_histograms(transactions.marker_durations),
        names.TRANSACTION_COMMITS: single(transactions.ended[Outcome.COMMITTED]),
        names.TRANSACTION_ABORTS: single(transactions.ended[Outcome.ABORTED]),
        names.TRANSACTION_FENCINGS: by_label("cause", transactions.fencings),
    }


def _cost_values(costs: CostStats) -> dict[Metric, Values]:
    """Return the values of what transactions cost; none while the log may not be read."""
    counted = [({"coordinator": str(broker)}, n) for broker, n in costs.transactional_ids.items()]
    return {
        names.RECORDS_PER_TRANSACTION: single(costs.records_per_transaction),
        names.TRANSACTIONAL_IDS: counted,
    }


def _marker_histograms(durations: Mapping[MarkersOf, Durations]) -> Values:
    return [
        (_labels_of_markers(*key), Histogram(took.counts, took.total.total_seconds()))
        for key, took in durations.items()
    ]


def _labels_of_markers(outcome: Outcome, coordinator: BrokerId | None) -> dict[str, str]:
    coordinated = {} if coordinator is None else {"coordinator": str(coordinator)}
    return {**coordinated, "outcome": outcome}


def _histograms(durations: Mapping[Outcome, Durations]) -> Values:
    return [
        ({"outcome": outcome}, Histogram(took.counts, took.total.total_seconds()))
        for outcome, took in durations.items()
    ]
