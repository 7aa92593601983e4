"""The metrics of Tidemark itself while it observes a cluster, reads logs and metrics, and writes history."""

from __future__ import annotations

from typing import Final

from rules.names.metric import CLUSTER_LABELS, Metric, Unit

ROUND_DURATION: Final = Metric(
    name="tidemark_round_duration_seconds",
    help="How long the latest round took, from the first request to the last byte stored.",
    unit=Unit.SECONDS,
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
)
REQUESTS: Final = Metric(
    name="tidemark_requests_total",
    help="Requests sent to Kafka, connection set-up included.",
    unit=Unit.REQUESTS,
    labels=(*CLUSTER_LABELS, "api"),
)
DUPLICATE_COMMITS: Final = Metric(
    name="tidemark_duplicate_commits_total",
    help="Commits that a broker returned more than once in a round; they are kept once.",
    unit=Unit.COMMITS,
)
ROUND_INTERVAL: Final = Metric(
    name="tidemark_round_interval_seconds",
    help="Seconds from the start of one round to the start of the next, as set.",
    unit=Unit.SECONDS,
)
ROUNDS: Final = Metric(
    name="tidemark_rounds_total",
    help="Rounds by outcome: complete, with gaps, or failed because the cluster did not answer.",
    unit=Unit.ROUNDS,
    labels=(*CLUSTER_LABELS, "outcome"),
)
CLOCK_STEPS: Final = Metric(
    name="tidemark_clock_steps_total",
    help="Times that this machine's clock was set by more than two seconds while rounds ran.",
    unit=Unit.STEPS,
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
POSTURE: Final = Metric(
    name="tidemark_posture_settings",
    help="Settings on which exactly-once depends, by check and verdict of the latest round: right, wrong, or "
    "unknown. What only clients know is left out.",
    unit=Unit.SETTINGS,
    labels=(*CLUSTER_LABELS, "check", "verdict"),
)
OPEN_FINDINGS: Final = Metric(
    name="tidemark_open_findings",
    help="Findings that are open: breaches that go on, cannot be judged now, or are events of today.",
    unit=Unit.FINDINGS,
    labels=(*CLUSTER_LABELS, "rule", "severity"),
)
LOSS_PARTITIONS: Final = Metric(
    name="tidemark_loss_partitions",
    help="Partitions with open findings of lost records, by the worst outcome that is known: lost (for "
    "certain), may_be_lost, read_beyond (a group has read records that are missing), unclean (an unclean "
    "election, nothing more is known), not_determinable, uncommitted (the lost records were never "
    "committed), restored. A partition counts once, however many findings report it.",
    unit=Unit.PARTITIONS,
    labels=(*CLUSTER_LABELS, "outcome"),
)
STORE_UP: Final = Metric(
    name="tidemark_store_up",
    help="Whether the result of the latest round is stored, so that it survives a restart.",
    unit=Unit.FLAG,
)
STORE_WAITING: Final = Metric(
    name="tidemark_store_waiting_rounds",
    help="Rounds that wait for the database.",
    unit=Unit.ROUNDS,
)
STORE_LOST: Final = Metric(
    name="tidemark_store_lost_transitions_total",
    help="Transitions of findings and alerts that were never stored, because too many waited for the "
    "database.",
    unit=Unit.TRANSITIONS,
)
STORE_REJECTED: Final = Metric(
    name="tidemark_store_rejected_rows_total",
    help="Rows that were left out because the database rejects them for good, by what they would have been: "
    "finding, alert, alert_step, alert_group, notification, closing, attempt. All others are stored.",
    unit=Unit.ROWS,
    labels=(*CLUSTER_LABELS, "kind"),
)
STORE_LAST_SUCCESS: Final = Metric(
    name="tidemark_store_last_success_timestamp_seconds",
    help="When the latest round that is stored began; absent before the first.",
    unit=Unit.TIMESTAMP,
)
SERIES_DROPPED: Final = Metric(
    name="tidemark_series_dropped",
    help="Series left out of this exposition, by what left them out: a pattern of topics or of groups, "
    "or a limit.",
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
)
AT_RISK_OBSERVATION_DURATION: Final = Metric(
    name="tidemark_at_risk_observation_duration_seconds",
    help="How long the latest observation of partitions at risk took; absent while nothing is watched.",
    unit=Unit.SECONDS,
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
    POSTURE,
    OPEN_FINDINGS,
    LOSS_PARTITIONS,
    STORE_UP,
    STORE_WAITING,
    STORE_LOST,
    STORE_REJECTED,
    STORE_LAST_SUCCESS,
    SERIES_DROPPED,
    AT_RISK_PARTITIONS,
    AT_RISK_OBSERVATIONS,
    AT_RISK_OBSERVATION_DURATION,
)

_SOURCE_LABELS: Final = (*CLUSTER_LABELS, "source")

BROKER_LOG_LINES: Final = Metric(
    name="tidemark_broker_log_lines_total",
    help="Lines that were read from a source of broker logs.",
    unit=Unit.LINES,
    labels=_SOURCE_LABELS,
)
BROKER_LOG_UNPARSED: Final = Metric(
    name="tidemark_broker_log_unparsed_lines_total",
    help="Lines about sequences or lost records that could not be parsed.",
    unit=Unit.LINES,
    labels=_SOURCE_LABELS,
)
BROKER_LOG_LOST: Final = Metric(
    name="tidemark_broker_log_lost_bytes_total",
    help="Bytes of log files that were removed before they were read, or part of a line of more than "
    "a megabyte. Bytes that were written and removed between two rounds are not counted.",
    unit=Unit.BYTES,
    labels=_SOURCE_LABELS,
)
BROKER_LOG_LAST_LINE: Final = Metric(
    name="tidemark_broker_log_last_line_timestamp_seconds",
    help="When the latest line was written, by the broker's clock; absent before the first.",
    unit=Unit.TIMESTAMP,
    labels=_SOURCE_LABELS,
)

BROKER_LOG_METRICS: Final = (
    BROKER_LOG_LINES,
    BROKER_LOG_UNPARSED,
    BROKER_LOG_LOST,
    BROKER_LOG_LAST_LINE,
)

_ENDPOINT_LABELS: Final = (*CLUSTER_LABELS, "endpoint")

SCRAPE_UP: Final = Metric(
    name="tidemark_scrape_up",
    help="Whether the latest scrape of a metrics endpoint succeeded; absent before the first.",
    unit=Unit.FLAG,
    labels=_ENDPOINT_LABELS,
)
SCRAPE_DURATION: Final = Metric(
    name="tidemark_scrape_duration_seconds",
    help="Duration of the latest scrape of a metrics endpoint, without parsing the response.",
    unit=Unit.SECONDS,
    labels=_ENDPOINT_LABELS,
)
SCRAPE_SAMPLES: Final = Metric(
    name="tidemark_scrape_samples",
    help="Samples that were kept of an endpoint's latest answer: those that Tidemark uses.",
    unit=Unit.SAMPLES,
    labels=_ENDPOINT_LABELS,
)

SCRAPE_METRICS: Final = (SCRAPE_UP, SCRAPE_DURATION, SCRAPE_SAMPLES)

HISTORY_UP: Final = Metric(
    name="tidemark_history_up",
    help="Whether the latest round is written to history, on the local disk.",
    unit=Unit.FLAG,
)
HISTORY_FOLDER_UP: Final = Metric(
    name="tidemark_history_folder_up",
    help="Whether the folder of history took the latest hour; until it does, hours wait.",
    unit=Unit.FLAG,
)
HISTORY_SERIES: Final = Metric(
    name="tidemark_history_series",
    help="Series that the latest written round has in history.",
    unit=Unit.SERIES,
)
HISTORY_ROUNDS: Final = Metric(
    name="tidemark_history_rounds_total",
    help="Rounds by what became of them in history: written, or lost to a disk that was full or away.",
    unit=Unit.ROUNDS,
    labels=(*CLUSTER_LABELS, "outcome"),
)
HISTORY_WAITING: Final = Metric(
    name="tidemark_history_waiting_bytes",
    help="Bytes of hours that are over and wait on the local disk for the folder of history.",
    unit=Unit.BYTES,
)
HISTORY_DAMAGED: Final = Metric(
    name="tidemark_history_damaged_files_total",
    help="Files of history that were torn or damaged; what could be read of them was used.",
    unit=Unit.FILES,
)
HISTORY_BACKWARD: Final = Metric(
    name="tidemark_history_backward_steps_total",
    help="Log ends and committed offsets that were lower than a round before, so that there was no "
    "rate: rewinds, truncations, topics that were created again.",
    unit=Unit.STEPS,
)
HISTORY_WRITE_DURATION: Final = Metric(
    name="tidemark_history_write_duration_seconds",
    help="How long writing the latest round of history took, beside the rounds.",
    unit=Unit.SECONDS,
)
HISTORY_LAST_SUCCESS: Final = Metric(
    name="tidemark_history_last_success_timestamp_seconds",
    help="When the latest round that is written in history began; absent before the first.",
    unit=Unit.TIMESTAMP,
)

HISTORY_METRICS: Final = (
    HISTORY_UP,
    HISTORY_FOLDER_UP,
    HISTORY_SERIES,
    HISTORY_ROUNDS,
    HISTORY_WAITING,
    HISTORY_DAMAGED,
    HISTORY_BACKWARD,
    HISTORY_WRITE_DURATION,
    HISTORY_LAST_SUCCESS,
)

BASELINE_BAND: Final = Metric(
    name="tidemark_baseline_band",
    help="What is usual now of a series that metrics.baseline_metrics chooses, by the baseline run in "
    "force: least, expected and most. The label metric is its name in history, whose unit it has; a "
    "series has only those labels of group, topic, partition and client that identify it. Absent where it has "
    "no band.",
    unit=Unit.OF_SERIES,
    labels=(*CLUSTER_LABELS, "metric", "group", "topic", "partition", "client", "bound"),
)

BASELINE_VALUE: Final = Metric(
    name="tidemark_baseline_value",
    help="What live scoring judged last of a series whose tidemark_baseline_band is shown, one polling interval "
    "late. Absent while it is not measured, or nothing was scored lately.",
    unit=Unit.OF_SERIES,
    labels=(*CLUSTER_LABELS, "metric", "group", "topic", "partition", "client"),
)

BASELINE_SCORE: Final = Metric(
    name="tidemark_baseline_score",
    help="How far that value is from what is expected, in usual deviations of its half hour: below zero under it, "
    "0 on a side that is not judged. Absent while it is not known.",
    unit=Unit.DEVIATIONS,
    labels=(*CLUSTER_LABELS, "metric", "group", "topic", "partition", "client"),
)

BASELINE_METRICS: Final = (BASELINE_BAND, BASELINE_VALUE, BASELINE_SCORE)
