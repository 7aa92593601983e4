"""The metrics of the stored history."""

from __future__ import annotations

from typing import Final

from rules.names.metric import CLUSTER_LABELS, Metric, MetricType, Unit

HISTORY_UP: Final = Metric(
    name="tidemark_history_up",
    help="Whether the latest round is written to history, on the local disk.",
    unit=Unit.FLAG,
    labels=CLUSTER_LABELS,
)
HISTORY_FOLDER_UP: Final = Metric(
    name="tidemark_history_folder_up",
    help="Whether the folder of history took the latest hour; until it does, hours wait.",
    unit=Unit.FLAG,
    labels=CLUSTER_LABELS,
)
HISTORY_SERIES: Final = Metric(
    name="tidemark_history_series",
    help="Series that the latest written round has in history.",
    unit=Unit.SERIES,
    labels=CLUSTER_LABELS,
)
HISTORY_ROUNDS: Final = Metric(
    name="tidemark_history_rounds_total",
    help="Rounds by what became of them in history: written, or lost to a disk that was full or away.",
    unit=Unit.ROUNDS,
    labels=(*CLUSTER_LABELS, "outcome"),
    type=MetricType.COUNTER,
)
HISTORY_WAITING: Final = Metric(
    name="tidemark_history_waiting_bytes",
    help="Bytes of hours that are over and wait on the local disk for the folder of history.",
    unit=Unit.BYTES,
    labels=CLUSTER_LABELS,
)
HISTORY_DAMAGED: Final = Metric(
    name="tidemark_history_damaged_files_total",
    help="Files of history that were torn or damaged; what could be read of them was used.",
    unit=Unit.FILES,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
HISTORY_BACKWARD: Final = Metric(
    name="tidemark_history_backward_steps_total",
    help="Log ends and committed offsets that were lower than a round before, so that there was no "
    "rate: rewinds, truncations, topics that were created again.",
    unit=Unit.STEPS,
    labels=CLUSTER_LABELS,
    type=MetricType.COUNTER,
)
HISTORY_WRITE_DURATION: Final = Metric(
    name="tidemark_history_write_duration_seconds",
    help="How long writing the latest round of history took, beside the rounds.",
    unit=Unit.SECONDS,
    labels=CLUSTER_LABELS,
)
HISTORY_LAST_SUCCESS: Final = Metric(
    name="tidemark_history_last_success_timestamp_seconds",
    help="When the latest round that is written in history began; absent before the first.",
    unit=Unit.TIMESTAMP,
    labels=CLUSTER_LABELS,
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
