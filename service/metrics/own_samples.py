"""The samples of Tidemark itself: where each of its metrics takes its values from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rules import names
from rules.facts.gap import GapCause
from rules.facts.scrapes import EndpointState
from rules.facts.snapshot import Snapshot
from rules.names import Metric
from service.history.stats import HistoryStats
from service.metrics.alerting import alert_values, delivery_values
from service.metrics.baseline_bands import band_values, scored_values
from service.metrics.lines import Samples, Values, by_label, samples_of_values, single
from service.metrics.log_stats import LogStats
from service.metrics.selection import DropReason
from service.metrics.totals import ProcessStats, RiskStats, SelfMetrics, StoreStats
from service.scheduling.job import JobStats


def own_samples(
    cluster: str,
    totals: SelfMetrics,
    snapshot: Snapshot | None = None,
    dropped: Mapping[DropReason, int] | None = None,
) -> Samples:
    """Return the lines about Tidemark itself; series are `dropped` only in a round with a snapshot."""
    values = {
        **_round_values(totals, snapshot),
        **_counter_values(totals),
        names.SERIES_DROPPED: by_label("reason", dropped or {}),
        **_store_values(totals.store),
        **_at_risk_values(totals.risk),
        **_scrape_values(totals.endpoints),
        **_log_values(totals.logs),
        **alert_values(totals.alerting),
        **delivery_values(totals.deliveries),
        **_history_values(totals.history),
        names.BASELINE_BAND: band_values(totals.baseline),
        names.BASELINE_VALUE: scored_values(totals.baseline, totals.baseline.values),
        names.BASELINE_SCORE: scored_values(totals.baseline, totals.baseline.scores),
    }
    process = {
        **_process_values(totals.process),
        names.BUILD_INFO: [({"version": totals.version}, 1)],
    }
    samples = samples_of_values(values, cluster) | samples_of_values(process, None)
    return {metric: samples.get(metric, b"") for metric in names.SELF_METRICS}


def _round_values(totals: SelfMetrics, snapshot: Snapshot | None) -> dict[Metric, Values]:
    """Return the values of the latest round; the totals' own come before those of the snapshot."""
    took, last_success, phases = totals.took_seconds, totals.last_success, totals.phase_seconds
    if snapshot is not None:
        took = snapshot.report.took_seconds if took is None else took
        last_success = last_success or snapshot.taken_at
        phases = {**snapshot.report.phase_seconds, **phases}
    return {
        names.ROUND_DURATION: single(took),
        names.PHASE_DURATION: by_label("phase", phases),
        names.LAST_SUCCESS: single(last_success),
        names.ROUND_INTERVAL: single(totals.interval_seconds),
        names.GAPS: [] if snapshot is None else _gaps(snapshot),
        names.VERDICTS: [
            ({"rule": rule, "verdict": verdict.name.lower()}, count)
            for (rule, verdict), count in totals.verdicts.items()
        ],
        names.POSTURE: [
            ({"check": check, "verdict": verdict}, count)
            for (check, verdict), count in totals.posture.items()
        ],
        names.OPEN_FINDINGS: [
            ({"rule": rule, "severity": severity}, count)
            for (rule, severity), count in totals.open_findings.items()
        ],
        names.LOSS_PARTITIONS: by_label(
            "outcome",
            {outcome.name.lower(): count for outcome, count in totals.loss_partitions.items()},
        ),
    }


def _gaps(snapshot: Snapshot) -> Values:
    """Return a value for every cause: an alert on a cause must not wait for its first gap."""
    gaps = snapshot.gaps_by_cause()
    return by_label("cause", {cause: gaps.get(cause, 0) for cause in GapCause})


def _counter_values(totals: SelfMetrics) -> dict[Metric, Values]:
    requests = Counter(totals.requests)
    requests.update({} if totals.risk is None else totals.risk.requests)
    return {
        names.REQUESTS: by_label("api", dict(sorted(requests.items()))),
        names.DUPLICATE_COMMITS: single(totals.duplicate_commits),
        names.ROUNDS: by_label("outcome", totals.rounds),
        names.CLOCK_STEPS: single(totals.clock_steps),
    }


def _store_values(store: StoreStats | None) -> dict[Metric, Values]:
    if store is None:
        return {}
    return {
        names.STORE_UP: single(int(store.is_up)),
        names.STORE_WAITING: single(store.waiting_rounds),
        names.STORE_LOST: single(store.lost_transitions),
        names.STORE_REJECTED: by_label("kind", store.rejected_rows),
        names.STORE_LAST_SUCCESS: single(store.last_success),
    }


def _at_risk_values(risk: RiskStats | None) -> dict[Metric, Values]:
    if risk is None:
        return {}
    states = {
        "observed": risk.observed,
        "unobserved": risk.unobserved,
        "unwatched": risk.unwatched,
    }
    return {
        names.AT_RISK_PARTITIONS: by_label("state", states),
        names.AT_RISK_OBSERVATIONS: single(risk.observations),
        names.AT_RISK_OBSERVATION_DURATION: single(risk.took_seconds),
    }


def _scrape_values(endpoints: Iterable[EndpointState]) -> dict[Metric, Values]:
    """Return the stats of every endpoint that was scraped."""
    scraped = [({"endpoint": e.name}, e) for e in endpoints if e.took_seconds is not None]
    return {
        names.SCRAPE_UP: [(own, int(state.is_up)) for own, state in scraped],
        names.SCRAPE_DURATION: [(own, state.took_seconds or 0.0) for own, state in scraped],
        names.SCRAPE_SAMPLES: [(own, state.samples) for own, state in scraped],
    }


def _log_values(logs: Mapping[str, LogStats]) -> dict[Metric, Values]:
    read = [({"source": source}, stats) for source, stats in logs.items()]
    return {
        names.BROKER_LOG_LINES: [(own, stats.lines) for own, stats in read],
        names.BROKER_LOG_UNPARSED: [(own, stats.unparsed) for own, stats in read],
        names.BROKER_LOG_LOST: [(own, stats.lost_bytes) for own, stats in read],
        names.BROKER_LOG_LAST_LINE: [
            (own, stats.last_line_at.timestamp()) for own, stats in read if stats.last_line_at
        ],
    }


def _history_values(stats: HistoryStats | None) -> dict[Metric, Values]:
    """Return the values of history; none where it is turned off."""
    if stats is None:
        return {}
    return {
        names.HISTORY_UP: single(int(stats.is_written)),
        names.HISTORY_FOLDER_UP: single(int(stats.is_stored)),
        names.HISTORY_SERIES: single(stats.series),
        names.HISTORY_ROUNDS: by_label(
            "outcome", {"written": stats.rounds, "lost": stats.lost_rounds}
        ),
        names.HISTORY_WAITING: single(stats.waiting_bytes),
        names.HISTORY_DAMAGED: single(stats.damaged),
        names.HISTORY_BACKWARD: single(stats.went_back),
        names.HISTORY_WRITE_DURATION: single(stats.took_seconds),
        names.HISTORY_LAST_SUCCESS: single(stats.written_at),
    }


def _process_values(process: ProcessStats) -> dict[Metric, Values]:
    return {
        names.TASK_RESTARTS: by_label("task", process.restarts),
        names.LOG_LINES_LOST: single(process.log_lines_lost),
        **_job_values(process.jobs),
        names.PROCESS_CPU: single(process.cpu_seconds),
        names.PROCESS_MEMORY: single(process.resident_bytes),
        names.PROCESS_FILES: single(process.open_files),
        names.PROCESS_START: single(process.started_at),
    }


def _job_values(stats: Sequence[JobStats]) -> dict[Metric, Values]:
    """Return the values of all jobs; every outcome has one from the start, for alerts on it."""
    jobs = [({"job_name": job.name}, job) for job in stats]
    return {
        names.JOB_RUNS: [
            ({**own, "outcome": outcome.value}, count)
            for own, job in jobs
            for outcome, count in job.ends.items()
        ],
        names.JOB_LATE_RUNS: [(own, job.late) for own, job in jobs],
        names.JOB_RUNNING: [(own, int(job.is_running)) for own, job in jobs],
        names.JOB_DURATION: [
            (own, job.took_seconds) for own, job in jobs if job.took_seconds is not None
        ],
        names.JOB_LAST_SUCCESS: [
            (own, job.last_success.timestamp()) for own, job in jobs if job.last_success
        ],
    }
