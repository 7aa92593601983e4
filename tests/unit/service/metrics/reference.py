"""What a plain prometheus-client collector makes of a snapshot: row by row, one sample at a time.

Names and values are written out here once more, so that a metric cannot change by accident.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest as generate_text
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from rules.facts.gap import GapCause
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import Outcome
from rules.names import METRICS
from rules.time_lag import TimeLags
from service.history.stats import HistoryStats
from service.metrics.ended_transactions import EndedTransactions
from service.metrics.log_stats import SequenceStats
from service.metrics.open_transactions import OpenTransactions
from service.metrics.totals import CostStats, ProcessStats, SelfMetrics
from service.scheduling.job import JobStats
from service.views.snapshot_rows import commit_rows, partition_rows, time_lag_rows
from tests.factories import at
from tests.unit.service.metrics.alerting_reference import (
    DURATION,
    alert_samples,
    delivery_samples,
)
from tests.unit.service.metrics.reading import OPENMETRICS, Family, families

Sample = tuple[str, Mapping[str, str], float | None]

PARTITION = "tidemark_kafka_partition_"
GROUP = "tidemark_kafka_group_"
TRANSACTION = "tidemark_kafka_transaction_"
MARKER_DURATION = TRANSACTION + "marker_duration_seconds"
HISTOGRAMS = (TRANSACTION + "duration_seconds", MARKER_DURATION, DURATION)
BOUNDS = (
    *("0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0"),
    *("30.0", "60.0", "75.0", "150.0", "300.0", "600.0", "900.0", "+Inf"),
)
KEPT = HistoryStats(
    is_stored=False,
    series=188_000,
    rounds=5_760,
    lost_rounds=2,
    went_back=30,
    waiting_bytes=2**30,
    damaged=1,
    written_at=at(15),
    took_seconds=0.125,
)
HELP = {metric.family: metric.help for metric in METRICS}


class ReferenceCollector(Collector):
    """Yields one family per metric that has a sample."""

    def __init__(
        self,
        seen: Snapshot,
        totals: SelfMetrics,
        found: OpenTransactions,
        lags: TimeLags | None,
    ) -> None:
        self._seen = seen
        self._totals = totals
        self._open = found
        self._lags = lags

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for name, labels, value in self._samples():
            if value is None:
                continue
            family, kind = family_of(name)
            unit = "seconds" if family.endswith("_seconds") else ""
            made = found.setdefault(family, Metric(family, HELP[family], kind, unit))
            made.add_sample(name, dict(labels), value)
        yield from found.values()

    def _samples(self) -> Iterator[Sample]:
        cluster = {"cluster": self._seen.cluster}
        for name, labels, value in (
            *partition_samples(self._seen),
            *replica_samples(self._seen),
            *scraped_samples(self._seen),
            *commit_samples(self._seen, self._lags),
            *group_samples(self._seen),
            *open_samples(self._seen, self._open),
            *ended_samples(self._totals.ended),
            *cost_samples(self._totals.costs),
            *sequence_samples(self._totals.sequences),
            *self_samples(self._seen, self._totals),
            *alert_samples(self._totals.alerting),
            *delivery_samples(self._totals.deliveries),
            *history_samples(self._totals),
            *band_samples(self._totals),
        ):
            yield name, {**cluster, **labels}, value
        yield from process_samples(self._totals.process)
        yield "tidemark_build_info", {"version": self._totals.version}, 1


def family_of(name: str) -> tuple[str, str]:
    """Return the family of a sample, and its type."""
    for part in ("_bucket", "_sum", "_count"):
        if name in [start + part for start in HISTOGRAMS]:
            return name.removesuffix(part), "histogram"
    is_counter = name.endswith("_total")
    return name.removesuffix("_total"), "counter" if is_counter else "gauge"


def reference(
    seen: Snapshot,
    totals: SelfMetrics,
    accept: str,
    found: OpenTransactions | None = None,
    lags: TimeLags | None = None,
) -> dict[str, Family]:
    """Return what prometheus-client itself would expose, parsed."""
    registry = CollectorRegistry(auto_describe=False)
    open_ = found or OpenTransactions.unjudged(len(seen.partitions))
    registry.register(ReferenceCollector(seen, totals, open_, lags))
    generate = generate_openmetrics if accept == OPENMETRICS else generate_text
    return families(generate(registry), accept)


def partition_samples(seen: Snapshot) -> Iterator[Sample]:
    for row in partition_rows(seen):
        labels = {"topic": row["topic"], "partition": str(row["partition"])}
        stable, watermark, end = (
            row["last_stable_offset"],
            row["high_watermark"],
            row["log_end_offset"],
        )
        placed = row["replicas"] is not None
        values: dict[str, float | None] = {
            "log_start_offset": row["log_start_offset"],
            "last_stable_offset": stable,
            "high_watermark": watermark,
            "log_end_offset": end,
            "leader_epoch": row["leader_epoch"],
            "open_span_offsets": _minus(watermark, stable),
            "unreplicated_span_offsets": _minus(end, watermark),
            "in_sync_replicas": _length(row["isr"]),
            "replicas": _length(row["replicas"]),
            "min_insync_replicas": row["min_insync_replicas"],
            "has_leader": int(row["leader"] is not None) if placed else None,
        }
        for name, value in values.items():
            yield PARTITION + name, labels, value


def replica_samples(seen: Snapshot) -> Iterator[Sample]:
    for row in partition_rows(seen):
        labels = {"topic": row["topic"], "partition": str(row["partition"])}
        for replica, end in (row["replica_log_end_offsets"] or {}).items():
            name = "tidemark_kafka_replica_log_end_offset"
            yield name, {**labels, "replica": str(replica)}, end


def scraped_samples(seen: Snapshot) -> Iterator[Sample]:
    for client in seen.scrapes.clients:
        labels = {"client": client.client_id, "address": client.address}
        labels |= {} if client.topic is None else {"topic": client.topic}
        for what, counted in (("errors", client.errors), ("retries", client.retries)):
            total = None if counted is None else counted.total
            yield f"tidemark_kafka_record_{what}_total", labels, total
    for errors in seen.scrapes.request_errors:
        labels = {"broker": errors.address, "request": errors.request, "error": errors.error}
        yield "tidemark_kafka_broker_request_errors_total", labels, errors.counted.total
    for elections in seen.scrapes.unclean_elections:
        labels = {"controller": elections.address}
        yield "tidemark_kafka_unclean_elections_total", labels, elections.counted.total


def commit_samples(seen: Snapshot, lags: TimeLags | None) -> Iterator[Sample]:
    seconds = time_lag_rows(lags, np.arange(len(seen.commits)))
    for (position, row), lag in zip(commit_rows(seen), seconds, strict=True):
        labels = {
            "group": seen.groups[position].group_id,
            "topic": row["topic"],
            "partition": str(row["partition"]),
        }
        yield GROUP + "committed_offset", labels, row["committed_offset"]
        yield GROUP + "read_committed_lag_offsets", labels, row["read_committed_lag"]
        yield GROUP + "read_uncommitted_lag_offsets", labels, row["read_uncommitted_lag"]
        for name in ("read_committed_lag_seconds", "read_uncommitted_lag_seconds"):
            yield GROUP + name, labels, lag[name]
        nothing = row["nothing_to_read"]
        yield GROUP + "nothing_to_read", labels, None if nothing is None else float(nothing)


def group_samples(seen: Snapshot) -> Iterator[Sample]:
    for group in seen.groups:
        name = {"group": group.group_id}
        yield GROUP + "members", name, group.member_count
        state = {} if group.state is None else {"state": group.state}
        yield GROUP + "info", {**name, "type": str(group.group_type), **state}, 1


def open_samples(seen: Snapshot, found: OpenTransactions) -> Iterator[Sample]:
    for row, held in enumerate(found.held_ms.to_list()):
        name = seen.partitions.index.topic_partition(row)
        labels = {"topic": name.topic, "partition": str(name.partition)}
        age = None if held is None else held / 1000
        yield PARTITION + "last_stable_offset_age_seconds", labels, age
    for class_, count in found.counts.items():
        yield "tidemark_kafka_open_transactions", {"class": str(class_)}, count
    for class_, seconds in found.age_seconds.items():
        name_of_age = "tidemark_kafka_open_transactions_oldest_age_seconds"
        yield name_of_age, {"class": str(class_)}, seconds


def ended_samples(found: EndedTransactions) -> Iterator[Sample]:
    if not found.is_known:
        return
    for name, labels, took in (
        *(
            (TRANSACTION + "duration_seconds", {"outcome": str(outcome)}, took)
            for outcome, took in found.durations.items()
        ),
        *(
            (MARKER_DURATION, {"coordinator": str(broker), "outcome": str(outcome)}, took)
            for (outcome, broker), took in found.marker_durations.items()
        ),
    ):
        for place, bound in enumerate(BOUNDS):
            yield name + "_bucket", {**labels, "le": bound}, sum(took.counts[: place + 1])
        yield name + "_count", labels, sum(took.counts)
        yield name + "_sum", labels, took.total.total_seconds()
    yield TRANSACTION + "commits_total", {}, found.ended[Outcome.COMMITTED]
    yield TRANSACTION + "aborts_total", {}, found.ended[Outcome.ABORTED]
    for cut, count in found.fencings.items():
        yield TRANSACTION + "fencings_total", {"cause": str(cut)}, count


def cost_samples(found: CostStats) -> Iterator[Sample]:
    yield TRANSACTION + "mean_records", {}, found.records_per_transaction
    for broker, count in found.transactional_ids.items():
        yield "tidemark_kafka_transactional_ids", {"coordinator": str(broker)}, count


def sequence_samples(found: SequenceStats) -> Iterator[Sample]:
    if found.rejections is not None:
        yield "tidemark_kafka_sequence_rejections_total", {}, found.rejections
    for (class_, phase), count in found.episodes.items():
        yield "tidemark_kafka_sequence_episodes", {"class": class_, "phase": phase}, count


def posture_samples(totals: SelfMetrics) -> Iterator[Sample]:
    for (check, verdict), count in totals.posture.items():
        yield "tidemark_posture_settings", {"check": check, "verdict": verdict}, count


def self_samples(seen: Snapshot, totals: SelfMetrics) -> Iterator[Sample]:
    yield "tidemark_kafka_brokers", {}, len(seen.brokers)
    if seen.controller is not None:
        yield "tidemark_kafka_controller_info", {"controller_id": str(seen.controller)}, 1
    yield "tidemark_round_duration_seconds", {}, seen.report.took_seconds
    for phase, took in seen.report.phase_seconds.items():
        yield "tidemark_round_phase_duration_seconds", {"phase": phase}, took
    yield "tidemark_last_success_timestamp_seconds", {}, seen.taken_at.timestamp()
    light = {} if totals.risk is None else totals.risk.requests
    for api in sorted({*totals.requests, *light}):
        sent = totals.requests.get(api, 0) + light.get(api, 0)
        yield "tidemark_requests_total", {"api": api}, sent
    yield "tidemark_duplicate_commits_total", {}, totals.duplicate_commits
    yield "tidemark_round_interval_seconds", {}, totals.interval_seconds
    for outcome, count in totals.rounds.items():
        yield "tidemark_rounds_total", {"outcome": outcome}, count
    yield "tidemark_clock_steps_total", {}, totals.clock_steps
    for cause in GapCause:
        count = sum(gap.cause is cause for gap in seen.gaps)
        yield "tidemark_gaps", {"cause": str(cause)}, count
    for (rule, verdict), count in totals.verdicts.items():
        yield "tidemark_verdicts", {"rule": rule, "verdict": verdict.name.lower()}, count
    yield from posture_samples(totals)
    for (rule, severity), count in totals.open_findings.items():
        yield "tidemark_open_findings", {"rule": rule, "severity": str(severity)}, count
    for worst, count in totals.loss_partitions.items():
        yield "tidemark_loss_partitions", {"outcome": worst.name.lower()}, count
    yield from store_samples(totals)
    for reason in ("topic_pattern", "group_pattern", "limit"):
        yield "tidemark_series_dropped", {"reason": reason}, 0
    yield from risk_samples(totals)
    yield from scrape_samples(totals)
    yield from log_samples(totals)


def process_samples(process: ProcessStats) -> Iterator[Sample]:
    yield from job_samples(process.jobs)
    for task, restarts in process.restarts.items():
        yield "tidemark_task_restarts_total", {"task": task}, restarts
    yield "tidemark_log_lines_lost_total", {}, process.log_lines_lost
    yield "process_cpu_seconds_total", {}, process.cpu_seconds
    yield "process_resident_memory_bytes", {}, process.resident_bytes
    yield "process_open_fds", {}, process.open_files
    started = None if process.started_at is None else process.started_at.timestamp()
    yield "process_start_time_seconds", {}, started


def job_samples(jobs: Sequence[JobStats]) -> Iterator[Sample]:
    for one in jobs:
        labels = {"job_name": one.name}
        for outcome, count in one.ends.items():
            yield "tidemark_job_runs_total", {**labels, "outcome": str(outcome)}, count
        yield "tidemark_job_late_runs_total", labels, one.late
        yield "tidemark_job_running", labels, int(one.is_running)
        yield "tidemark_job_duration_seconds", labels, one.took_seconds
        if one.last_success is not None:
            yield (
                "tidemark_job_last_success_timestamp_seconds",
                labels,
                one.last_success.timestamp(),
            )


def risk_samples(totals: SelfMetrics) -> Iterator[Sample]:
    risk = totals.risk
    if risk is not None:
        yield "tidemark_at_risk_partitions", {"state": "observed"}, risk.observed
        yield "tidemark_at_risk_partitions", {"state": "unobserved"}, risk.unobserved
        yield "tidemark_at_risk_partitions", {"state": "unwatched"}, risk.unwatched
        yield "tidemark_at_risk_observations_total", {}, risk.observations
        yield "tidemark_at_risk_observation_duration_seconds", {}, risk.took_seconds


def scrape_samples(totals: SelfMetrics) -> Iterator[Sample]:
    for one in totals.endpoints:
        labels = {"endpoint": one.name}
        if one.took_seconds is not None:
            yield "tidemark_scrape_up", labels, int(one.is_up)
            yield "tidemark_scrape_duration_seconds", labels, one.took_seconds
            yield "tidemark_scrape_samples", labels, one.samples


def log_samples(totals: SelfMetrics) -> Iterator[Sample]:
    for source, one in totals.logs.items():
        labels, start = {"source": source}, "tidemark_broker_log_"
        yield start + "lines_total", labels, one.lines
        yield start + "unparsed_lines_total", labels, one.unparsed
        yield start + "lost_bytes_total", labels, one.lost_bytes
        if one.last_line_at is not None:
            yield start + "last_line_timestamp_seconds", labels, one.last_line_at.timestamp()


def store_samples(totals: SelfMetrics) -> Iterator[Sample]:
    store = totals.store
    if store is not None:
        yield "tidemark_store_up", {}, int(store.is_up)
        yield "tidemark_store_waiting_rounds", {}, store.waiting_rounds
        yield "tidemark_store_lost_transitions_total", {}, store.lost_transitions
        for kind, count in store.rejected_rows.items():
            yield "tidemark_store_rejected_rows_total", {"kind": kind}, count
        last = None if store.last_success is None else store.last_success.timestamp()
        yield "tidemark_store_last_success_timestamp_seconds", {}, last


def history_samples(totals: SelfMetrics) -> Iterator[Sample]:
    kept, start = totals.history, "tidemark_history_"
    if kept is not None:
        yield start + "up", {}, int(kept.is_written)
        yield start + "folder_up", {}, int(kept.is_stored)
        yield start + "series", {}, kept.series
        yield start + "rounds_total", {"outcome": "written"}, kept.rounds
        yield start + "rounds_total", {"outcome": "lost"}, kept.lost_rounds
        yield start + "waiting_bytes", {}, kept.waiting_bytes
        yield start + "damaged_files_total", {}, kept.damaged
        yield start + "backward_steps_total", {}, kept.went_back
        yield start + "write_duration_seconds", {}, kept.took_seconds
        last = None if kept.written_at is None else kept.written_at.timestamp()
        yield start + "last_success_timestamp_seconds", {}, last


def band_samples(totals: SelfMetrics) -> Iterator[Sample]:
    for band in totals.baseline.shown:
        partition = None if band.partition is None else str(band.partition)
        every = {
            "metric": band.metric,
            "group": band.group,
            "topic": band.topic,
            "partition": partition,
        }
        labels = {name: text for name, text in every.items() if text is not None}
        for bound in ("least", "expected", "most"):
            yield "tidemark_baseline_band", {**labels, "bound": bound}, getattr(band, bound)
        if band.metric == "read_committed_lag_seconds":  # of the other one nothing is known
            yield "tidemark_baseline_value", labels, 84.0
            yield "tidemark_baseline_score", labels, 7.5


def _minus(end: int | None, begin: int | None) -> int | None:
    return None if end is None or begin is None else end - begin


def _length(members: Sequence[int] | None) -> int | None:
    return None if members is None else len(members)
