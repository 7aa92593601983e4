"""The series of a round: their ids as columns, kept from round to round.

A series of the round before keeps its id, and a round with the same partitions and commits has the same
columns. New ids are made metric by metric: the texts of one subject differ only in their heads, and their
common tail is made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rules.baseline.series import Metric, series_ids, text_head, text_tail
from rules.facts.commit_keys import CommitKeys
from rules.facts.identity import TopicPartition
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions
from rules.record_errors.series import ClientTopic
from service.history.blocks import CODE_OF, Bools, Codes, Int64s

COMMIT_METRICS: Final = (
    Metric.READ_COMMITTED_LAG,
    Metric.READ_UNCOMMITTED_LAG,
    Metric.READ_COMMITTED_LAG_SECONDS,
    Metric.READ_UNCOMMITTED_LAG_SECONDS,
    Metric.CONSUME_RATE,
)
CLIENT_METRICS: Final = (Metric.CLIENT_RECORD_ERROR_RATE, Metric.CLIENT_RECORD_RETRY_RATE)
PARTITION_METRICS: Final = (Metric.PRODUCE_RATE, Metric.OPEN_SPAN, Metric.UNREPLICATED_SPAN)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subjects:
    """The subjects that a round has series of."""

    commits: CommitKeys  # and all partitions
    rejected: tuple[TopicPartition, ...] = ()  # partitions that had batches rejected
    error_topics: tuple[str, ...] = ()  # topics whose producers report failed records
    clients: tuple[ClientTopic, ...] = ()  # with series of their own

    @property
    def partitions(self) -> Partitions:
        """Return the partitions."""
        return self.commits.partitions

    def is_same(self, other: Subjects) -> bool:
        """Whether the series are the same, in the same order."""
        mine, theirs = self.commits, other.commits
        return (
            (self.rejected, self.error_topics, self.clients)
            == (other.rejected, other.error_topics, other.clients)
            and mine.group_ids == theirs.group_ids
            and mine.partitions.index.topics == theirs.partitions.index.topics
            and np.array_equal(mine.partitions.index.starts, theirs.partitions.index.starts)
            and np.array_equal(mine.row, theirs.row)
            and np.array_equal(mine.group, theirs.group)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesColumns:
    """The series of a round in the order of its values."""

    ids: Int64s
    metric: Codes  # places in `METRICS`
    is_kept: Bools  # False: an earlier series has the same id, and this one is left out

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RoundSeries:
    """The ids of a round."""

    subjects: Subjects
    of_commits: Int64s  # shape (metrics, commits)
    of_partitions: Int64s  # shape (metrics, partitions)
    columns: SeriesColumns


class SeriesIds:
    """Makes and keeps the ids of one cluster's series."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._series: _RoundSeries | None = None
        self._new: dict[int, bytes] = {}
        self.version = 0  # changes with the columns

    def columns(self, subjects: Subjects) -> SeriesColumns:
        """Return the series: by metric the commits, the partitions, rejections, topics, the cluster, clients."""
        series = self._series
        if series is None or not subjects.is_same(series.subjects):
            series = self._make(subjects, series)
            self._series = series
            self.version += 1
        return series.columns

    def take_new(self) -> dict[int, bytes]:
        """Return the texts (`Series.text`) of series that are new since the last call, by id.

        Some of them may have been returned before.
        """
        new, self._new = self._new, {}
        return new

    def make_anew(self) -> None:
        """Forget all ids, so that all labels are returned once more."""
        self._series = None

    def _make(self, subjects: Subjects, before: _RoundSeries | None) -> _RoundSeries:
        of_commits = self._of_commits(subjects.commits, before)
        of_partitions = self._of_partitions(subjects.partitions, before)
        parts: list[tuple[Metric, Int64s]] = [
            *zip(COMMIT_METRICS, of_commits, strict=True),
            *zip(PARTITION_METRICS, of_partitions, strict=True),
        ]
        rejected = [
            text_tail(partition.topic, partition.partition, None) for partition in subjects.rejected
        ]
        errors = [text_tail(topic, None, None) for topic in subjects.error_topics]
        parts.append((Metric.SEQUENCE_ERRORS, self._ids(Metric.SEQUENCE_ERRORS, rejected)))
        parts.append((Metric.RECORD_ERROR_RATE, self._ids(Metric.RECORD_ERROR_RATE, errors)))
        whole = [text_tail(None, None, None)]
        parts.append((Metric.ABORT_RATIO, self._ids(Metric.ABORT_RATIO, whole)))
        clients = [
            text_tail(client.topic, None, None, client.client_id) for client in subjects.clients
        ]
        parts += [(metric, self._ids(metric, clients)) for metric in CLIENT_METRICS]
        return _RoundSeries(
            subjects=subjects,
            of_commits=of_commits,
            of_partitions=of_partitions,
            columns=_columns(parts),
        )

    def _of_commits(self, keys: CommitKeys, before: _RoundSeries | None) -> Int64s:
        ids = np.zeros((len(COMMIT_METRICS), len(keys)), np.int64)
        places = np.full(len(keys), -1, np.int64)
        if before is not None:
            places = before.subjects.commits.find_keys(keys)
            ids[:, places >= 0] = before.of_commits[:, places[places >= 0]]
        new = np.flatnonzero(places < 0)
        groups = (keys.group_ids[place] for place in keys.group[new].tolist())
        names = zip(_names(keys.partitions, keys.row[new]), groups, strict=True)
        tails = [text_tail(topic, partition, group) for (topic, partition), group in names]
        for place, metric in enumerate(COMMIT_METRICS):
            ids[place, new] = self._ids(metric, tails)
        return ids

    def _of_partitions(self, partitions: Partitions, before: _RoundSeries | None) -> Int64s:
        ids = np.zeros((len(PARTITION_METRICS), len(partitions)), np.int64)
        rows = np.full(len(partitions), -1, np.int64)
        if before is not None:
            rows = matching_rows(partitions, before.subjects.partitions, needs_id=False)
            ids[:, rows >= 0] = before.of_partitions[:, rows[rows >= 0]]
        new = np.flatnonzero(rows < 0)
        names = _names(partitions, new)
        tails = [text_tail(topic, partition, None) for topic, partition in names]
        for place, metric in enumerate(PARTITION_METRICS):
            ids[place, new] = self._ids(metric, tails)
        return ids

    def _ids(self, metric: Metric, tails: Sequence[bytes]) -> Int64s:
        """Make the ids of series of a metric from the tails of their texts."""
        head = text_head(self._cluster, metric)
        texts = [head + tail for tail in tails]
        ids = series_ids(texts)
        for series_id, text in zip(ids.tolist(), texts, strict=True):
            self._new.setdefault(series_id, text)
        return ids


def _names(partitions: Partitions, rows: Int64s) -> Iterable[tuple[str, int]]:
    """Yield topic and partition of rows."""
    index = partitions.index
    position = index.topic_of_row[rows]
    numbers = (rows - index.starts[position]).tolist()
    return zip((index.topics[topic] for topic in position.tolist()), numbers, strict=True)


def _columns(parts: Sequence[tuple[Metric, Int64s]]) -> SeriesColumns:
    ids = np.concatenate([of_metric for _, of_metric in parts])
    codes = [np.full(len(of_metric), CODE_OF[metric], np.uint8) for metric, of_metric in parts]
    is_first = np.zeros(len(ids), np.bool_)
    is_first[np.unique(ids, return_index=True)[1]] = True  # the first of each
    return SeriesColumns(ids=ids, metric=np.concatenate(codes), is_kept=is_first)
