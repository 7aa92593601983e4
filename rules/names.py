"""The closed set of metrics: nothing else is exposed, and dashboards and alerts use only these.

`tidemark_kafka_...` is what was observed in Kafka, `tidemark_...` is Tidemark itself. A value that
is not known has no sample: never 0, -1 or NaN.
Source: prometheus.io/docs/practices/naming; the words are Kafka's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class MetricType(StrEnum):
    """How a metric moves; the words of the exposition formats."""

    GAUGE = "gauge"
    COUNTER = "counter"  # name ends with _total; starts again at 0 with the process


class Unit(StrEnum):
    """What one step of the value is."""

    OFFSET = "offset"  # a position in a partition
    OFFSETS = "offsets"  # a number of offsets, not of records: markers use offsets too
    EPOCH = "epoch"
    SECONDS = "seconds"
    TIMESTAMP = "seconds since 1970-01-01 UTC"
    FLAG = "1 yes, 0 no"
    INFO = "always 1; the labels carry the meaning"
    REPLICAS = "replicas"
    MEMBERS = "members"
    BROKERS = "brokers"
    REQUESTS = "requests"
    COMMITS = "commits"
    GAPS = "gaps"
    SERIES = "series"
    FINDINGS = "findings"
    SUBJECTS = "subjects"  # what rules judge: partitions, commits, rules
    ROUNDS = "rounds"
    TRANSITIONS = "transitions"
    STEPS = "steps"
    RESTARTS = "restarts"
    LINES = "lines"
    BYTES = "bytes"
    DESCRIPTORS = "file descriptors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: one quantity in one unit."""

    name: str  # as it is queried
    help: str
    unit: Unit
    labels: tuple[str, ...]
    type: MetricType = MetricType.GAUGE

    @property
    def family(self) -> str:
        """Return the name that OpenMetrics gives the family: a counter's is without `_total`."""
        return self.name.removesuffix("_total") if self.type is MetricType.COUNTER else self.name


# ------------------------------------------------------------------ label sets
CLUSTER_LABELS: Final = ("cluster",)
PARTITION_LABELS: Final = ("cluster", "topic", "partition")
GROUP_LABELS: Final = ("cluster", "group")
COMMIT_LABELS: Final = ("cluster", "group", "topic", "partition")


def _partition(name: str, unit: Unit, text: str) -> Metric:
    return Metric(
        name=f"tidemark_kafka_partition_{name}", help=text, unit=unit, labels=PARTITION_LABELS
    )


def _commit(name: str, unit: Unit, text: str) -> Metric:
    return Metric(name=f"tidemark_kafka_group_{name}", help=text, unit=unit, labels=COMMIT_LABELS)


# ------------------------------------------------------------------ observed, per partition
LOG_START_OFFSET: Final = _partition(
    "log_start_offset", Unit.OFFSET, "First offset that the leader still retains."
)
LAST_STABLE_OFFSET: Final = _partition(
    "last_stable_offset",
    Unit.OFFSET,
    "First offset whose transaction is undecided: how far read_committed readers get.",
)
HIGH_WATERMARK: Final = _partition(
    "high_watermark",
    Unit.OFFSET,
    "End of what is replicated: how far read_uncommitted readers get.",
)
LOG_END_OFFSET: Final = _partition(
    "log_end_offset", Unit.OFFSET, "Next offset that the leader writes."
)
LEADER_EPOCH: Final = _partition(
    "leader_epoch", Unit.EPOCH, "Generation of the leader, from its own ListOffsets answer."
)
OPEN_SPAN: Final = _partition(
    "open_span_offsets",
    Unit.OFFSETS,
    "High watermark minus last stable offset: offsets held back by open transactions.",
)
UNREPLICATED_SPAN: Final = _partition(
    "unreplicated_span_offsets",
    Unit.OFFSETS,
    "Log end offset minus high watermark: offsets that exist on too few replicas.",
)
IN_SYNC_REPLICAS: Final = _partition(
    "in_sync_replicas", Unit.REPLICAS, "Replicas that are in sync, the leader included."
)
REPLICAS: Final = _partition("replicas", Unit.REPLICAS, "Replicas that are assigned.")
MIN_INSYNC_REPLICAS: Final = _partition(
    "min_insync_replicas", Unit.REPLICAS, "The topic's effective min.insync.replicas."
)
HAS_LEADER: Final = _partition("has_leader", Unit.FLAG, "Whether the partition has a leader.")

PARTITION_METRICS: Final = (
    LOG_START_OFFSET,
    LAST_STABLE_OFFSET,
    HIGH_WATERMARK,
    LOG_END_OFFSET,
    LEADER_EPOCH,
    OPEN_SPAN,
    UNREPLICATED_SPAN,
    IN_SYNC_REPLICAS,
    REPLICAS,
    MIN_INSYNC_REPLICAS,
    HAS_LEADER,
)

# ------------------------------------------------------------------ observed, per commit
COMMITTED_OFFSET: Final = _commit(
    "committed_offset",
    Unit.OFFSET,
    "Next offset that the group will read; the start offset of a share group.",
)
READ_COMMITTED_LAG: Final = _commit(
    "read_committed_lag_offsets",
    Unit.OFFSETS,
    "Last stable offset minus committed offset; absent where the group stands above it.",
)
READ_UNCOMMITTED_LAG: Final = _commit(
    "read_uncommitted_lag_offsets",
    Unit.OFFSETS,
    "High watermark minus committed offset; absent where the group stands above it.",
)
NOTHING_TO_READ: Final = _commit(
    "nothing_to_read",
    Unit.FLAG,
    "Whether the read_committed lag holds only markers and aborted records; absent if not asked.",
)

COMMIT_METRICS: Final = (
    COMMITTED_OFFSET,
    READ_COMMITTED_LAG,
    READ_UNCOMMITTED_LAG,
    NOTHING_TO_READ,
)

# ------------------------------------------------------------------ observed, per group
GROUP_MEMBERS: Final = Metric(
    name="tidemark_kafka_group_members",
    help="Members of the group, as its coordinator describes it.",
    unit=Unit.MEMBERS,
    labels=GROUP_LABELS,
)
GROUP_INFO: Final = Metric(
    name="tidemark_kafka_group_info",
    help="Type and state of the group in Kafka's words; no state label while it is unknown.",
    unit=Unit.INFO,
    labels=(*GROUP_LABELS, "type", "state"),
)

GROUP_METRICS: Final = (GROUP_MEMBERS, GROUP_INFO)

# ------------------------------------------------------------------ observed, per cluster
BROKERS: Final = Metric(
    name="tidemark_kafka_brokers",
    help="Brokers that are registered.",
    unit=Unit.BROKERS,
    labels=CLUSTER_LABELS,
)
CONTROLLER_INFO: Final = Metric(
    name="tidemark_kafka_controller_info",
    help="Id of the active controller, as the quorum names it; absent while it may not be asked.",
    unit=Unit.INFO,
    labels=(*CLUSTER_LABELS, "controller_id"),
)

CLUSTER_METRICS: Final = (BROKERS, CONTROLLER_INFO)

# ------------------------------------------------------------------ Tidemark itself
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
    help="Rounds by outcome: complete, with gaps, or failed because the cluster could not be asked.",
    unit=Unit.ROUNDS,
    labels=(*CLUSTER_LABELS, "outcome"),
    type=MetricType.COUNTER,
)
CLOCK_STEPS: Final = Metric(
    name="tidemark_clock_steps_total",
    help="Times that this machine's clock was set by more than two seconds while rounds were made.",
    unit=Unit.STEPS,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
GAPS: Final = Metric(
    name="tidemark_gaps",
    help="Things that the latest round should have seen and did not.",
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
    help="Whether what the latest round found is stored, so that a restart remembers it.",
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
    help="Transitions of findings that were never stored, because too many waited for the database.",
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
TASK_RESTARTS: Final = Metric(
    name="tidemark_task_restarts_total",
    help="Times that a task of the service died and was started again; the log says why.",
    unit=Unit.RESTARTS,
    labels=("task",),
    type=MetricType.COUNTER,
)
LOG_LINES_LOST: Final = Metric(
    name="tidemark_log_lines_lost_total",
    help="Log lines that could not be written, as to a full disk.",
    unit=Unit.LINES,
    labels=(),
    type=MetricType.COUNTER,
)
BUILD_INFO: Final = Metric(
    name="tidemark_build_info",
    help="The version of Tidemark that runs.",
    unit=Unit.INFO,
    labels=("version",),
)

# Names that every exporter has, so that dashboards of processes know Tidemark too.
PROCESS_CPU: Final = Metric(
    name="process_cpu_seconds_total",
    help="Processor time that the process has used.",
    unit=Unit.SECONDS,
    labels=(),
    type=MetricType.COUNTER,
)
PROCESS_MEMORY: Final = Metric(
    name="process_resident_memory_bytes",
    help="Resident memory of the process, an embedded PostgreSQL left out.",
    unit=Unit.BYTES,
    labels=(),
)
PROCESS_FILES: Final = Metric(
    name="process_open_fds",
    help="File descriptors that the process has open.",
    unit=Unit.DESCRIPTORS,
    labels=(),
)
PROCESS_START: Final = Metric(
    name="process_start_time_seconds",
    help="When the process started.",
    unit=Unit.TIMESTAMP,
    labels=(),
)

STANDARD_METRICS: Final = (PROCESS_CPU, PROCESS_MEMORY, PROCESS_FILES, PROCESS_START)
PROCESS_METRICS: Final = (
    TASK_RESTARTS,
    LOG_LINES_LOST,
    BUILD_INFO,
    *STANDARD_METRICS,
)  # no cluster

SELF_METRICS: Final = (
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
    *PROCESS_METRICS,
)

METRICS: Final = (
    *PARTITION_METRICS,
    *COMMIT_METRICS,
    *GROUP_METRICS,
    *CLUSTER_METRICS,
    *SELF_METRICS,
)
