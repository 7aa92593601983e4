"""Which value of a snapshot each metric shows: the one place that ties names to facts."""

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
    """Tell where there is a leader; a partition that the answer left out has no replicas known."""
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
    found: OpenTransactions,
    lags: TimeLags | None = None,
) -> Samples:
    """Return the sample lines of every metric, in the order of `names.METRICS`; some are empty."""
    cluster = snapshot.cluster
    observed = _observed(snapshot, table, found, lags)
    dropped = [({"reason": reason}, n) for reason, n in table.selection.dropped.items()]
    seen: dict[Metric, Values] = {
        names.ROUND_DURATION: [({}, snapshot.report.took_seconds)],
        names.LAST_SUCCESS: [({}, snapshot.taken_at.timestamp())],
        names.GAPS: _gaps(snapshot),
        names.SERIES_DROPPED: dropped,
    }
    phases = {**snapshot.report.phase_seconds, **totals.phase_seconds}
    own = _self_samples(cluster, replace(totals, phase_seconds=phases), seen)
    return observed | _happened(cluster, totals.ended, totals.sequences) | own


def blind_samples(cluster: str, totals: SelfMetrics) -> Samples:
    """Return the lines of a round that saw nothing: no value of the cluster is repeated as news.

    Counters go on being shown: they tell what happened so far, not how it is now.
    """
    happened = _happened(cluster, totals.ended, totals.sequences.after(None))
    return happened | _self_samples(cluster, totals, {})


def _happened(cluster: str, ended: EndedTransactions, rejected: SequenceStats) -> Samples:
    """Write what was counted of Kafka so far."""
    return ended_samples(cluster, ended) | _rejected(cluster, rejected)


def _rejected(cluster: str, found: SequenceStats) -> Samples:
    lines: Values = [] if found.rejections is None else [({}, found.rejections)]
    episodes = [
        ({"class": class_, "phase": phase}, n) for (class_, phase), n in found.episodes.items()
    ]
    return {
        names.SEQUENCE_REJECTIONS: _lines(names.SEQUENCE_REJECTIONS, cluster, lines),
        names.SEQUENCE_EPISODES: _lines(names.SEQUENCE_EPISODES, cluster, episodes),
    }


def _observed(
    snapshot: Snapshot, table: SeriesTable, open_: OpenTransactions, lags: TimeLags | None
) -> Samples:
    cluster, chosen = snapshot.cluster, table.selection
    found: Samples = {}
    for metric in names.PARTITION_METRICS:
        is_age = metric is names.LAST_STABLE_OFFSET_AGE
        column = open_.held_ms if is_age else PARTITION_COLUMNS[metric](snapshot)
        steps = MS_PER_SECOND if is_age else 1
        shown = column.take(chosen.rows)
        found[metric] = column_lines(metric, cluster, table.row_labels, shown, steps)
    for metric in names.COMMIT_METRICS:
        column, steps = _of_commits(metric, snapshot, lags)
        shown = column.take(chosen.commits)
        found[metric] = column_lines(metric, cluster, table.commit_labels, shown, steps)
    found |= _group_samples(snapshot, table)
    for metric, values in _cluster_values(snapshot).items():
        found[metric] = _lines(metric, cluster, values)
    return found | open_samples(cluster, open_)


def _of_commits(metric: Metric, snapshot: Snapshot, lags: TimeLags | None) -> tuple[Column, int]:
    """Return the values of a metric, and how many steps of theirs make one of its unit."""
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
    """Give every cause a number: an alert on a cause must not wait for its first gap."""
    gaps = snapshot.gaps_by_cause()
    return [({"cause": cause}, gaps.get(cause, 0)) for cause in GapCause]


def _self_samples(cluster: str, totals: SelfMetrics, seen: Mapping[Metric, Values]) -> Samples:
    """Write the metrics about Tidemark; `seen` holds those that need a snapshot."""
    values = {**seen, **_counted(totals), **_latest(totals), **_stored(totals)}
    values |= _at_risk(totals.risk)
    values |= _scraped(totals.endpoints)
    values |= _log_lines(totals.logs)
    found = {
        metric: _lines(metric, cluster, values.get(metric, ())) for metric in names.SELF_METRICS
    }
    found[names.BUILD_INFO] = line(names.BUILD_INFO, {"version": totals.version}, 1)
    found |= alert_samples(cluster, totals.alerting)
    found |= delivery_samples(cluster, totals.deliveries)
    found |= history_samples(cluster, totals.history)
    found |= job_samples(totals.process.jobs)
    return found | _process_samples(totals.process)


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
    known = {metric: value for metric, value in values.items() if value is not None}
    return {
        names.TASK_RESTARTS: b"".join(restarts),
        **{metric: line(metric, {}, value) for metric, value in known.items()},
    }


def _counted(totals: SelfMetrics) -> dict[Metric, Values]:
    requests = Counter(totals.requests)
    requests.update({} if totals.risk is None else totals.risk.requests)
    return {
        names.REQUESTS: [({"api": api}, requests[api]) for api in sorted(requests)],
        names.DUPLICATE_COMMITS: [({}, totals.duplicate_commits)],
        names.ROUNDS: [({"outcome": outcome}, n) for outcome, n in totals.rounds.items()],
        names.CLOCK_STEPS: [({}, totals.clock_steps)],
    }


def _latest(totals: SelfMetrics) -> dict[Metric, Values]:
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


def _stored(totals: SelfMetrics) -> dict[Metric, Values]:
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


def _at_risk(risk: RiskStats | None) -> dict[Metric, Values]:
    if risk is None:
        return {}
    took: Values = [] if risk.took_seconds is None else [({}, risk.took_seconds)]
    return {
        names.RISK_PARTITIONS: [({}, risk.at_risk)],
        names.RISK_WATCHED: [({}, risk.watched)],
        names.RISK_UNSEEN: [({}, risk.unseen)],
        names.AT_RISK_OBSERVATIONS: [({}, risk.observations)],
        names.AT_RISK_OBSERVATION_DURATION: took,
    }


def _scraped(endpoints: Iterable[EndpointState]) -> dict[Metric, Values]:
    """Give the stats of every endpoint that was asked."""
    asked = [
        ({"endpoint": endpoint.name}, endpoint)
        for endpoint in endpoints
        if endpoint.took_seconds is not None
    ]
    return {
        names.SCRAPE_UP: [(labels, int(one.is_up)) for labels, one in asked],
        names.SCRAPE_DURATION: [(labels, one.took_seconds or 0.0) for labels, one in asked],
        names.SCRAPE_SAMPLES: [(labels, one.samples) for labels, one in asked],
    }


def _log_lines(logs: Mapping[str, LogStats]) -> dict[Metric, Values]:
    read = [({"source": source}, stats) for source, stats in logs.items()]
    return {
        names.BROKER_LOG_LINES: [(labels, one.lines) for labels, one in read],
        names.BROKER_LOG_UNPARSED: [(labels, one.unparsed) for labels, one in read],
        names.BROKER_LOG_LOST: [(labels, one.lost_bytes) for labels, one in read],
        names.BROKER_LOG_LAST_LINE: [
            (labels, one.last_line_at.timestamp()) for labels, one in read if one.last_line_at
        ],
    }


def _lines(metric: Metric, cluster: str, values: Values) -> bytes:
    return b"".join(line(metric, {"cluster": cluster, **own}, value) for own, value in values)
