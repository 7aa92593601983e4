"""Extracts the samples of a judged round for history: a value per series, NaN where it is unknown.

Nothing here waits, reads or writes. One caller at a time, round after round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.broker_log import EpochRejected, SequenceRejected, partition_of
from rules.facts.column import Column, Int64s
from rules.facts.commit_keys import CommitKeys
from rules.facts.identity import TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.memory import Memory
from rules.facts.scrapes import ClientReading, ProducerName, Scrapes
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND, SECOND_US
from rules.facts.transaction_log import Outcome
from rules.record_errors.series import ClientPlaces, ClientTopic, client_rates
from rules.time_lag import TimeLags
from service.history.blocks import Codes
from service.history.rates import MAX_ROUNDS, Floats, LogEnds, Rates, rates_between
from service.history.series_ids import SeriesIds, Subjects

US_PER_MS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedRound:
    """A judged round, as history takes it."""

    snapshot: Snapshot
    before: Memory | None  # what was remembered when it began; None: nothing
    time_lags: TimeLags | None = None  # by commit of the snapshot
    clock_step: timedelta | None = None  # by how much the clock was set since the round before


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundSamples:
    """The samples of one round; all columns have one row per series."""

    at_ms: int  # when the round began, ms since 1970-01-01 UTC
    version: int  # of the series: rounds of the same version have the same ids in the same order
    ids: Int64s
    metric: Codes
    values: Floats  # NaN: unknown
    went_back: int  # offsets that went down since the round before
    collided: int  # series that are left out: another one has the same id

    def __len__(self) -> int:
        return len(self.ids)


class Extraction:
    """Extracts the samples of one cluster's rounds."""

    def __init__(self, cluster: str, *, interval_seconds: float) -> None:
        self.ids = SeriesIds(cluster)
        self._longest_us = int(interval_seconds * (MAX_ROUNDS + 0.5) / MICROSECOND.total_seconds())
        self._log_ends = LogEnds()
        self._cluster_id = ""
        self._last_us: int | None = None  # when the round before began
        self._rejected: set[TopicPartition] = set()  # partitions that had batches rejected
        self._clients = ClientPlaces()  # that have series of their own

    def samples(self, judged: JudgedRound) -> RoundSamples:
        """Return the samples of a round and remember what the next one compares with."""
        snapshot = judged.snapshot
        self._begin(judged)
        now_us = microseconds(snapshot.taken_at)
        places = snapshot.offset_commits
        rejections = _rejections(snapshot)
        self._rejected.update(rejections)
        errors = record_error_rates(snapshot.scrapes)
        self._clients = self._clients.after(snapshot.scrapes, now_us)
        clients = client_rates(snapshot.scrapes, self._clients)
        subjects = self._subjects(snapshot, places, errors, tuple(clients))
        columns = self.ids.columns(subjects)
        produced = self._log_ends.rates(
            snapshot.partitions,
            snapshot.offsets.log_end_offset,
            now_us,
            longest_us=self._longest_us,
        )
        consumed = self._consumption_rates(judged, now_us)
        values = np.concatenate(
            [
                *_commit_values(judged, places, consumed),
                produced.values,
                _floats(snapshot.offsets.open_span),
                _floats(snapshot.offsets.unreplicated_span),
                self._rejection_rates(snapshot, subjects, rejections, now_us),
                np.array([errors[topic] for topic in subjects.error_topics], np.float64),
                np.array([abort_ratio(snapshot)], np.float64),
                np.array([rates.errors for rates in clients.values()], np.float64),
                np.array([rates.retries for rates in clients.values()], np.float64),
            ]
        )
        self._last_us = now_us
        collided = int(np.count_nonzero(~columns.is_kept))
        return RoundSamples(
            at_ms=now_us // US_PER_MS,
            version=self.ids.version,
            ids=columns.ids[columns.is_kept] if collided else columns.ids,
            metric=columns.metric[columns.is_kept] if collided else columns.metric,
            values=values[columns.is_kept] if collided else values,
            went_back=produced.went_back + consumed.went_back,
            collided=collided,
        )

    def take_new_labels(self) -> dict[int, bytes]:
        """Return the texts of series that no earlier call has returned, by id."""
        return self.ids.take_new()

    def _begin(self, judged: JudgedRound) -> None:
        if self._last_us is None and judged.before is not None:  # those of before a restart
            episodes = judged.before.sequences.episodes
            self._rejected.update(episode.name for episode in episodes if episode.name is not None)
        if judged.snapshot.cluster_id != self._cluster_id:  # another cluster, and an empty memory
            self._cluster_id = judged.snapshot.cluster_id
            self._log_ends, self._last_us = LogEnds(), None
            self._clients = ClientPlaces()
        if judged.clock_step is not None:
            by_us = judged.clock_step // MICROSECOND
            self._log_ends.shift(by_us)
            self._last_us = None if self._last_us is None else self._last_us + by_us

    def _subjects(
        self,
        snapshot: Snapshot,
        places: Int64s,
        errors: Mapping[str, float],
        clients: tuple[ClientTopic, ...],
    ) -> Subjects:
        index = snapshot.partitions.index
        listed = (
            partition
            for partition in self._rejected
            if index.row(partition.topic, partition.partition) is not None
        )
        return Subjects(
            commits=CommitKeys(
                partitions=snapshot.partitions,
                group_ids=tuple(group.group_id for group in snapshot.groups),
                group=snapshot.commits.group[places],
                row=snapshot.commits.row[places],
            ),
            rejected=tuple(sorted(listed)),
            error_topics=tuple(sorted(errors)),
            clients=clients,
        )

    def _consumption_rates(self, judged: JudgedRound, now_us: int) -> Rates:
        """Return the consumption rates, by commit: committed offsets per second."""
        commits, before = judged.snapshot.commits, judged.before
        if before is None or before.cluster_id != judged.snapshot.cluster_id:
            return Rates(np.full(len(commits), np.nan), 0)
        memory = before.commits
        places = memory.keys.find(judged.snapshot.partitions, judged.snapshot.groups, commits)
        return rates_between(
            Column.known(commits.committed_offset),
            now_us,
            memory.unchanged.values.take(places),
            Column.known(memory.seen_us).take(places),
            longest_us=self._longest_us,
        )

    def _rejection_rates(
        self,
        snapshot: Snapshot,
        subjects: Subjects,
        rejections: Counter[TopicPartition],
        now_us: int,
    ) -> Floats:
        """Return rejected batches per second; absent where not all of the logs could be read."""
        rates = np.full(len(subjects.rejected), np.nan)
        log = snapshot.broker_log
        if not log.is_read or self._last_us is None or any(source.error for source in log.sources):
            return rates
        elapsed_us = now_us - self._last_us
        if not 0 < elapsed_us <= self._longest_us:
            return rates
        for place, name in enumerate(subjects.rejected):
            rates[place] = rejections[name] * SECOND_US / elapsed_us
        return rates


def _commit_values(judged: JudgedRound, places: Int64s, consumed: Rates) -> list[Floats]:
    snapshot, lags = judged.snapshot, judged.time_lags
    commits, unknown = snapshot.commits, np.full(len(places), np.nan)
    return [
        _floats(commits.read_committed_lag(snapshot.offsets))[places],
        _floats(commits.read_uncommitted_lag(snapshot.offsets))[places],
        unknown if lags is None else lags.read_committed.seconds[places],
        unknown if lags is None else lags.read_uncommitted.seconds[places],
        consumed.values[places],
    ]


def _floats(column: Column) -> Floats:
    return np.where(column.valid, column.values.astype(np.float64), np.nan)


def _rejections(snapshot: Snapshot) -> Counter[TopicPartition]:
    """Count the batches that were rejected since the last round, by partition."""
    names = (
        partition_of(event)
        for event in snapshot.broker_log.events
        if isinstance(event, SequenceRejected | EpochRejected)
    )
    return Counter(name for name in names if name is not None)


def abort_ratio(snapshot: Snapshot) -> float:
    """Return the share of aborts among the transactions that ended since the last round, 0 to 1.

    NaN where none ended or the coordinators' log is not read.
    """
    ended = snapshot.transaction_log.ended
    if not snapshot.transaction_log.is_read or not ended:
        return float("nan")
    return sum(transaction.outcome is Outcome.ABORTED for transaction in ended) / len(ended)


def record_error_rates(scrapes: Scrapes) -> dict[str, float]:
    """Return records per second that failed for good, by topic, of the producers that report it.

    A producer that several endpoints report counts once. NaN where none of them has a fresh answer.
    """
    rates_of: dict[str, dict[ProducerName, float]] = {}
    fresh = scrapes.fresh
    for client in scrapes.clients:
        if client.topic is None or client.errors is None or client.is_gone:
            continue
        mine = rates_of.setdefault(client.topic, {})
        rate = _rate(client) if client.endpoint in fresh else None
        if rate is not None:
            name = ProducerName(client.address, client.client_id)
            mine[name] = max(mine.get(name, 0.0), rate)
    return {
        topic: sum(rates.values()) if rates else float("nan") for topic, rates in rates_of.items()
    }


def _rate(reading: ClientReading) -> float | None:
    return None if reading.errors is None else reading.errors.rate
