"""Lines of series whose subjects change from round to round, so that the series table does not keep them.

They are replicas of partitions at risk, and what clients, brokers and controllers count. They share what
partitions and groups leave of the limit on series, in this order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rules import names
from rules.facts.column import Column, Int64s
from rules.facts.snapshot import Snapshot
from rules.names import Metric
from service.metrics.lines import CLOSE, Samples, closed, column_lines, label, shared_label
from service.metrics.scraped_counters import Labels, scraped_counters
from service.metrics.selection import DropReason
from service.metrics.table import SeriesTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangingSeries:
    """The lines of a round, and the series left out by reason."""

    samples: Samples
    dropped: Mapping[DropReason, int]


def changing_series(snapshot: Snapshot, table: SeriesTable) -> ChangingSeries:
    """Return the series of a round that fit."""
    replicas, dropped = _shown_replicas(snapshot, table)
    samples = _replica_lines(snapshot, table, replicas)
    shared = shared_label("cluster", snapshot.cluster)
    spare = table.selection.spare - len(replicas)
    for metric, totals in scraped_counters(snapshot.scrapes).items():
        allowed = [labels for labels in totals if _is_topic_shown(table, _topic_of(metric, labels))]
        shown = allowed[:spare]
        spare -= len(shown)
        dropped[DropReason.TOPIC_PATTERN] += len(totals) - len(allowed)
        dropped[DropReason.LIMIT] += len(allowed) - len(shown)
        values = Column.of(totals[labels] for labels in shown)
        subjects = _subjects(metric, shown)
        samples[metric] = column_lines(metric, shared, subjects, values)
    return ChangingSeries(samples=samples, dropped=dropped)


def _topic_of(metric: Metric, labels: Labels) -> str | None:
    return labels[-1] if metric.labels[-1] == "topic" else None


def _is_topic_shown(table: SeriesTable, topic: str | None) -> bool:
    return topic is None or table.limits.topics.shows(topic)


def _shown_replicas(snapshot: Snapshot, table: SeriesTable) -> tuple[Int64s, Counter[DropReason]]:
    """Return the places of the replicas that are shown, and how many are left out."""
    row_of_value = snapshot.partitions.replicas.row_of_value
    places = np.flatnonzero(snapshot.followed[row_of_value])
    places = places[snapshot.offsets.replica_log_end_offsets.valid[places]]
    rows = row_of_value[places]
    is_selected = np.isin(rows, table.selection.rows)
    shown = places[is_selected][: table.selection.spare]
    index = snapshot.partitions.index
    hidden = sum(
        not _is_topic_shown(table, index.topics[topic])
        for topic in index.topic_of_row[rows[~is_selected]].tolist()
    )
    reasons = {
        DropReason.TOPIC_PATTERN: hidden,
        DropReason.LIMIT: len(places) - len(shown) - hidden,
    }
    return shown, Counter(reasons)


def _replica_lines(snapshot: Snapshot, table: SeriesTable, places: Int64s) -> Samples:
    replicas = snapshot.partitions.replicas
    of_row = np.searchsorted(table.selection.rows, replicas.row_of_value[places]).tolist()
    brokers = replicas.values[places].tolist()
    subjects = [
        table.row_labels[row].removesuffix(CLOSE) + b',replica="%d"' % broker + CLOSE
        for row, broker in zip(of_row, brokers, strict=True)
    ]
    metric = names.REPLICA_LOG_END_OFFSET
    ends = snapshot.offsets.replica_log_end_offsets.take(places)
    return {metric: column_lines(metric, shared_label("cluster", snapshot.cluster), subjects, ends)}


def _subjects(metric: Metric, series: Sequence[Labels]) -> list[bytes]:
    """Return the closed labels of each series."""
    own = metric.labels[1:]  # behind the cluster
    return closed(
        b",".join(
            [label(name, text) for name, text in zip(own, labels, strict=True) if text is not None]
        )
        for labels in series
    )
