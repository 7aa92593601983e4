"""The metrics of Tidemark itself while it observes a cluster."""

from __future__ import annotations

from typing import Final

from rules.names.metric import CLUSTER_LABELS, Metric, MetricType, Unit

ROUND_DURATION: Final = Metric(
    name="tidemark_round_duration_seconds",
    help="How long the latest round took, from the first request to the last byte stored.",
    unit=Unit.SECONDS,
    labels=CLUSTER_LABELS,
)
PHASE_DURATION: Final = Metric(
    name="tidemark_round_phase_duration_seconds",
    help="How long each phase of the latest round took.",
    unit=Unit.SECONDS,
    labels=(*CLUSTER_LABELS, "phase"),
)
LAST_SUCCESS: Final = Metric(
    name="tidemark_last_success_timestamp_seconds",
    help="When the latest round that gave a snapshot began; the age of all data is time() minus this.",
    unit=Unit.TIMESTAMP,
    labels=CLUSTER_LABELS,
)
REQUESTS: Final = Metric(
    name="tidemark_requests_total",
    help="Requests sent to Kafka, connection set-up included.",
    unit=Unit.REQUESTS,
    labels=(*CLUSTER_LABELS, "api"),
    type=MetricType.COUNTER,
)
DUPLICATE_COMMITS: Final = Metric(
    name="tidemark_duplicate_commits_total",
    help="Commits that a broker returned more than once in a round; they are kept once.",
    unit=Unit.COMMITS,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
ROUND_INTERVAL: Final = Metric(
    name="tidemark_round_interval_seconds",
    help="Seconds from the start of one round to the start of the next, as set.",
    unit=Unit.SECONDS,
    labels=CLUSTER_LABELS,
)
ROUNDS: Final = Metric(
    name="tidemark_rounds_total",
    help="Rounds by outcome: complete, with gaps, or failed because the cluster did not answer.",
    unit=Unit.ROUNDS,
    labels=(*CLUSTER_LABELS, "outcome"),
    type=MetricType.COUNTER,
)
CLOCK_STEPS: Final = Metric(
    name="tidemark_clock_steps_total",
    help="Times that this machine's clock was set by more than two seconds while rounds ran.",
    unit=Unit.STEPS,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
GAPS: Final = Metric(
    name="tidemark_gaps",
    help="Values that the latest round should have read and could not, by cause.",
    unit=Unit.GAPS,
    labels=(*CLUSTER_LABELS, "cause"),
)
VERDICTS: Final = Metric(
    name="tidemark_verdicts",
    help="Subjects of each rule by its verdict in the latest round: ok, unknown or breach.",
    unit=Unit.SUBJECTS,
    labels=(*CLUSTER_LABELS, "rule", "verdict"),
)
OPEN_FINDINGS: Final = Metric(
    name="tidemark_open_findings",
    help="Findings that are open: breaches that go on, cannot be judged now, or are events of today.",
    unit=Unit.FINDINGS,
    labels=(*CLUSTER_LABELS, "rule", "severity"),
)
STORE_UP: Final = Metric(
    name="tidemark_store_up",
    help="Whether the result of the latest round is stored, so that it survives a restart.",
    unit=Unit.FLAG,
    labels=CLUSTER_LABELS,
)
STORE_WAITING: Final = Metric(
    name="tidemark_store_waiting_rounds",
    help="Rounds that wait for the database.",
    unit=Unit.ROUNDS,
    labels=CLUSTER_LABELS,
)
STORE_LOST: Final = Metric(
    name="tidemark_store_lost_transitions_total",
    help="Transitions of findings and alerts that were never stored, because too many waited for the "
    "database.",
    unit=Unit.TRANSITIONS,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
STORE_LAST_SUCCESS: Final = Metric(
    name="tidemark_store_last_success_timestamp_seconds",
    help="When the latest round that is stored began; absent before the first.",
    unit=Unit.TIMESTAMP,
    labels=CLUSTER_LABELS,
)
SERIES_DROPPED: Final = Metric(
    name="tidemark_series_dropped",
    help="Series of partitions and groups left out of this exposition, by what left them out.",
    unit=Unit.SERIES,
    labels=(*CLUSTER_LABELS, "reason"),
)
AT_RISK_PARTITIONS: Final = Metric(
    name="tidemark_at_risk_partitions",
    help="Partitions that may lose records with their leader, as of the latest round: an ISR smaller "
    "than the replica set, or a high watermark that is unchanged while the log end is ahead of it. By "
    "state: observed (watched between rounds, and its leader answered in the latest observation), "
    "unobserved (watched, but without an answer in it, also before the first one), unwatched (no "
    "leader, or beyond service.max_risk_partitions). Their sum is the number of partitions at risk.",
    unit=Unit.PARTITIONS,
    labels=(*CLUSTER_LABELS, "state"),
)
AT_RISK_OBSERVATIONS: Final = Metric(
    name="tidemark_at_risk_observations_total",
    help="Observations of partitions at risk between rounds; none are made while nothing is at risk.",
    unit=Unit.OBSERVATIONS,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
AT_RISK_OBSERVATION_DURATION: Final = Metric(
    name="tidemark_at_risk_observation_duration_seconds",
    help="How long the latest observation of partitions at risk took; absent while nothing is watched.",
    unit=Unit.SECONDS,
    labels=CLUSTER_LABELS,
)

WATCHING_METRICS: Final = (
    ROUND_DURATION,
    PHASE_DURATION,
    LAST_SUCCESS,
    REQUESTS,
    DUPLICATE_COMMITS,
    ROUND_INTERVAL,
    ROUNDS,
    CLOCK_STEPS,
    GAPS,
    VERDICTS,
    OPEN_FINDINGS,
    STORE_UP,
    STORE_WAITING,
    STORE_LOST,
    STORE_LAST_SUCCESS,
    SERIES_DROPPED,
    AT_RISK_PARTITIONS,
    AT_RISK_OBSERVATIONS,
    AT_RISK_OBSERVATION_DURATION,
)
