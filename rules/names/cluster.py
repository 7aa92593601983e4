"""What is observed of a cluster as a whole."""

from __future__ import annotations

from typing import Final

from rules.names.metric import CLUSTER_LABELS, Metric, Unit

BROKERS: Final = Metric(
    name="tidemark_kafka_brokers",
    help="Brokers that are registered.",
    unit=Unit.BROKERS,
    labels=CLUSTER_LABELS,
)
CONTROLLER_INFO: Final = Metric(
    name="tidemark_kafka_controller_info",
    help="Id of the active controller, as the quorum reports it; absent without permission to query it.",
    unit=Unit.INFO,
    labels=(*CLUSTER_LABELS, "controller_id"),
)

CLUSTER_METRICS: Final = (BROKERS, CONTROLLER_INFO)
