"""The closed set of metrics, in the order in which they are exposed."""

from __future__ import annotations

from typing import Final

from rules.names.alerting import ALERTING_METRICS
from rules.names.broker_logs import BROKER_LOG_METRICS
from rules.names.cluster import CLUSTER_METRICS
from rules.names.groups import COMMIT_METRICS, GROUP_METRICS
from rules.names.history import HISTORY_METRICS
from rules.names.itself import WATCHING_METRICS
from rules.names.partitions import PARTITION_METRICS
from rules.names.process import PROCESS_METRICS
from rules.names.scrapes import SCRAPE_METRICS
from rules.names.sequences import SEQUENCE_METRICS
from rules.names.transactions import ENDED_METRICS, OPEN_METRICS

SELF_METRICS: Final = (
    *WATCHING_METRICS,
    *ALERTING_METRICS,
    *BROKER_LOG_METRICS,
    *SCRAPE_METRICS,
    *HISTORY_METRICS,
    *PROCESS_METRICS,
)

METRICS: Final = (
    *PARTITION_METRICS,
    *COMMIT_METRICS,
    *GROUP_METRICS,
    *CLUSTER_METRICS,
    *OPEN_METRICS,
    *ENDED_METRICS,
    *SEQUENCE_METRICS,
    *SELF_METRICS,
)
