"""The samples of every metric: the one place that maps metrics to facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from rules import names
from rules.facts.column import Column, Ragged
from rules.facts.gap import GapCause
from rules.facts.groups import Group
from rules.facts.scrapes import EndpointState
from rules.facts.snapshot import Snapshot
from rules.facts.times import SECOND_US
from rules.names import Metric
from rules.time_lag import TimeLag, TimeLags
from service.metrics.alerting import alert_samples, delivery_samples
from service.metrics.ended_transactions import EndedTransactions
from service.metrics.history import history_samples
from service.metrics.jobs import job_samples
from service.metrics.labels import CLOSE, closed, label
from service.metrics.lines import column_lines, line
from service.metrics.log_stats import LogStats
from service.metrics.open_transactions import OpenTransactions
from service.metrics.sequence_stats import SequenceStats
from service.metrics.table import SeriesTable
from service.metrics.totals import ProcessStats, RiskStats, SelfMetrics
from service.metrics.transaction_samples import ended_samples, open_samples

MS_PER_SECOND: Final = 1000

Samples = dict[Metric, bytes]
Values = Iterable[tuple[Mapping[str, str], float]]  # labels besides the cluster, value


def _lengths(lists: Ragged) -> Column:
    return Column(np.where(lists.valid, lists.lengths, 0), lists.valid)


def _has_leader(snapshot: Snapshot) -> Column:
    """Return 1 where there is a leader, 0 where not; absent for partitions that the answer left out."""
    placed = snapshot.partitions
    return Column.known(placed.leader.valid.astype(np.int64)).where(placed.replicas.valid)


PARTITION_COLUMNS: Final[Mapping[Metric, Callable[[Snapshot], Column]]] = {
    names.LOG_START_OFFSET: lambda seen: seen.offsets.log_start_offset,
    names.LAST_STABLE_OFFSET: lambda seen: seen.offsets.last_stable_offset,
    names.HIGH_WATERMARK: lambda seen: seen.offsets.high_watermark,
    names.LOG_END_OFFSET: lambda seen: seen.offsets.log_end_offset,
    names.LEADER_EPOCH: lambda seen: seen.offsets.leader_epoch,
    names.OPEN_SPAN: lambda seen: seen.offsets.open_span,
    names.UNREPLICATED_SPAN: lambda seen: seen.offsets.unreplicated_span,
    names.IN_SYNC_REPLICAS: lambda seen: _lengths(seen.partitions.isr),
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


def samples_of(
    snapshot: Snapshot,
    totals: SelfMetrics,
    table: SeriesTable,
    transactions: OpenTransactions,
    lags: TimeLags | None = None,
) -> Samples:
    """Return the sample lines of every metric, in the order of `names.METRICS`; some are empty."""
    cluster = snapshot.cluster
    observed = _cluster_samples(snapshot, table, transactions, lags)
    dropped = [({"reason": reason}, n) for reason, n in table.selection.dropped.items()]
    seen: dict[Metric, Values] = {
        names.ROUND_DURATION: [({}, snapshot.report.took_seconds)],
        names.LAST_SUCCESS: [({}, snapshot.taken_at.timestamp())],
        names.GAPS: _gaps(snapshot),
        names.SERIES_DROPPED: dropped,
    }
    phases = {**snapshot.report.phase_seconds, **totals.phase_seconds}
    own = _self_samples(cluster, replace(totals, phase_seconds=phases), seen)
    return observed | _event_samples(cluster, totals.ended, totals.sequences) | own


def blind_samples(cluster: str, totals: SelfMetrics) -> Samples:
    """Return the lines of a round without a snapshot: no value of the cluster is repeated as if current.

    Counters are still exposed: they count what happened so far.
    """
    happened = _event_samples(cluster, totals.ended, totals.sequences.after(None))
    return happened | _self_samples(cluster, totals, {})


def _event_samples(cluster: str, ended: EndedTransactions, rejected: SequenceStats) -> Samples:
    """Return the lines of counters about Kafka."""
    return ended_samples(cluster, ended) | _sequence_samples(cluster, rejected)


def _sequence_samples(cluster: str, stats: SequenceStats) -> Samples:
    lines: Values = [] if stats.rejections is None else [({}, stats.rejections)]
    episodes = [
        ({"class": class_, "phase": phase}, n) for (class_, phase), n in stats.episodes.items()
    ]
    return {
        names.SEQUENCE_REJECTIONS: _lines(names.SEQUENCE_REJECTIONS, cluster, lines),
        names.SEQUENCE_EPISODES: _lines(names.SEQUENCE_EPISODES, cluster, episodes),
    }


def _cluster_samples(
    snapshot: Snapshot, table: SeriesTable, open_: OpenTransactions, lags: TimeLags | None
) -> Samples:
    cluster, chosen = snapshot.cluster, table.selection
    samples: Samples = {}
    for metric in names.PARTITION_METRICS:
        is_age = metric is names.LAST_STABLE_OFFSET_AGE
        column = open_.held_ms if is_age else PARTITION_COLUMNS[metric](snapshot)
        steps = MS_PER_SECOND if is_age else 1
        shown = column.take(chosen.rows)
        samples[metric] = column_lines(metric, cluster, table.row_labels, shown, steps)
    for metric in names.COMMIT_METRICS:
        column, steps = _of_commits(metric, snapshot, lags)
        shown = column.take(chosen.commits)
        samples[metric] = column_lines(metric, cluster, table.commit_labels, shown, steps)
    samples |= _group_samples(snapshot, table)
    for metric, values in _cluster_values(snapshot).items():
        samples[metric] = _lines(metric, cluster, values)
    return samples | open_samples(cluster, open_)


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
    cluster, plain = snapshot.cluster, closed(table.group_labels)
    return {
        names.GROUP_MEMBERS: column_lines(names.GROUP_MEMBERS, cluster, plain, members),
        names.GROUP_INFO: column_lines(names.GROUP_INFO, cluster, infos, always),
    }


def _info(name: bytes, group: Group) -> bytes:
    pieces = [name, label("type", group.group_type)]
    if group.state is not None:
        pieces.append(label("state", group.state))
    return b",".join(pieces) + CLOSE


def _cluster_values(snapshot: Snapshot) -> dict[Metric, Values]:
    controller = snapshot.controller
    infos = [] if controller is None else [({"controller_id": str(controller)}, 1)]
    return {names.BROKERS: [({}, len(snapshot.brokers))], names.CONTROLLER_INFO: infos}


def _gaps(snapshot: Snapshot) -> Values:
    """Return a value for every cause: an alert on a cause must not wait for its first gap."""
    gaps = snapshot.gaps_by_cause()
    return [({"cause": cause}, gaps.get(cause, 0)) for cause in GapCause]


def _self_samples(cluster: str, totals: SelfMetrics, seen: Mapping[Metric, Values]) -> Samples:
    """Return the lines about Tidemark itself; `seen` holds values that need a snapshot."""
    values = {**seen, **_counter_values(totals), **_latest_values(totals), **_store_values(totals)}
    values |= _at_risk_values(totals.risk)
    values |= _scrape_values(totals.endpoints)
    values |= _log_values(totals.logs)
    samples = {
        metric: _lines(metric, cluster, values.get(metric, ())) for metric in names.SELF_METRICS
    }
    samples[names.BUILD_INFO] = line(names.BUILD_INFO, {"version": totals.version}, 1)
    samples |= alert_samples(cluster, totals.alerting)
    samples |= delivery_samples(cluster, totals.deliveries)
    samples |= history_samples(cluster, totals.history)
    samples |= job_samples(totals.process.jobs)
    return samples | _process_samples(totals.process)


def _process_samples(process: ProcessStats) -> Samples:
    restarts = (line(names.TASK_RESTARTS, {"task": t}, n) for t, n in process.restarts.items())
    started = None if process.started_at is None else process.started_at.timestamp()
    values = {
        names.LOG_LINES_LOST: process.log_lines_lost,
        names.PROCESS_CPU: process.cpu_seconds,
        names.PROCESS_MEMORY: process.resident_bytes,
        names.PROCESS_FILES: process.open_files,
        names.PROCESS_START: started,
    }
    known_values = {metric: value for metric, value in values.items() if value is not None}
    return {
        names.TASK_RESTARTS: b"".join(restarts),
        **{metric: line(metric, {}, value) for metric, value in known_values.items()},
    }


def _counter_values(totals: SelfMetrics) -> dict[Metric, Values]:
    requests = Counter(totals.requests)
    requests.update({} if totals.risk is None else totals.risk.requests)
    return {
        names.REQUESTS: [({"api": api}, requests[api]) for api in sorted(requests)],
        names.DUPLICATE_COMMITS: [({}, totals.duplicate_commits)],
        names.ROUNDS: [({"outcome": outcome}, n) for outcome, n in totals.rounds.items()],
        names.CLOCK_STEPS: [({}, totals.clock_steps)],
    }


def _latest_values(totals: SelfMetrics) -> dict[Metric, Values]:
    valueses: dict[Metric, Values] = {
        names.PHASE_DURATION: [({"phase": p}, took) for p, took in totals.phase_seconds.items()],
        names.VERDICTS: [
            ({"rule": rule, "verdict": verdict.name.lower()}, count)
            for (rule, verdict), count in totals.verdicts.items()
        ],
        names.OPEN_FINDINGS: [
            ({"rule": rule, "severity": severity}, count)
            for (rule, severity), count in totals.open_findings.items()
        ],
    }
    if totals.interval_seconds is not None:
        valueses[names.ROUND_INTERVAL] = [({}, totals.interval_seconds)]
    if totals.took_seconds is not None:
        valueses[names.ROUND_DURATION] = [({}, totals.took_seconds)]
    if totals.last_success is not None:
        valueses[names.LAST_SUCCESS] = [({}, totals.last_success.timestamp())]
    return valueses


def _store_values(totals: SelfMetrics) -> dict[Metric, Values]:
    store = totals.store
    if store is None:
        return {}
    last: Values = [] if store.last_success is None else [({}, store.last_success.timestamp())]
    return {
        names.STORE_UP: [({}, int(store.is_up))],
        names.STORE_WAITING: [({}, store.waiting_rounds)],
        names.STORE_LOST: [({}, store.lost_transitions)],
        names.STORE_LAST_SUCCESS: last,
    }


def _at_risk_values(risk: RiskStats | None) -> dict[Metric, Values]:
    if risk is None:
        return {}
    took: Values = [] if risk.took_seconds is None else [({}, risk.took_seconds)]
    return {
        names.AT_RISK_PARTITIONS: [
            ({"state": "observed"}, risk.observed),
            ({"state": "unobserved"}, risk.unobserved),
            ({"state": "unwatched"}, risk.unwatched),
        ],
        names.AT_RISK_OBSERVATIONS: [({}, risk.observations)],
        names.AT_RISK_OBSERVATION_DURATION: took,
    }


def _scrape_values(endpoints: Iterable[EndpointState]) -> dict[Metric, Values]:
    """Return the stats of every endpoint that was scraped."""
    queried = [
        ({"endpoint": endpoint.name}, endpoint)
        for endpoint in endpoints
        if endpoint.took_seconds is not None
    ]
    return {
        names.SCRAPE_UP: [(labels, int(state.is_up)) for labels, state in queried],
        names.SCRAPE_DURATION: [(labels, state.took_seconds or 0.0) for labels, state in queried],
        names.SCRAPE_SAMPLES: [(labels, state.samples) for labels, state in queried],
    }


def _log_values(logs: Mapping[str, LogStats]) -> dict[Metric, Values]:
    read = [({"source": source}, stats) for source, stats in logs.items()]
    return {
        names.BROKER_LOG_LINES: [(labels, source_stats.lines) for labels, source_stats in read],
        names.BROKER_LOG_UNPARSED: [
            (labels, source_stats.unparsed) for labels, source_stats in read
        ],
        names.BROKER_LOG_LOST: [(labels, source_stats.lost_bytes) for labels, source_stats in read],
        names.BROKER_LOG_LAST_LINE: [
            (labels, source_stats.last_line_at.timestamp())
            for labels, source_stats in read
            if source_stats.last_line_at
        ],
    }


def _lines(metric: Metric, cluster: str, values: Values) -> bytes:
    return b"".join(line(metric, {"cluster": cluster, **own}, value) for own, value in values)
