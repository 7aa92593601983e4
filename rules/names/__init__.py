"""The closed set of metrics: nothing else is exposed, and dashboards and alerts use only these.

`tidemark_kafka_...` is what was observed in Kafka, `tidemark_...` is Tidemark itself. A value that
is not known has no sample: never 0, -1 or NaN.
Source: prometheus.io/docs/practices/naming; the words are Kafka's own.
"""

# ruff: noqa: F403 - the other files of this folder are nothing but names, each declared once

from typing import Final

from rules.names.alerting import *
from rules.names.alerting import ALERTING_METRICS
from rules.names.itself import *
from rules.names.itself import (
    BASELINE_METRICS,
    BROKER_LOG_METRICS,
    HISTORY_METRICS,
    SCRAPE_METRICS,
    WATCHING_METRICS,
)
from rules.names.metric import *
from rules.names.observed import *
from rules.names.observed import OBSERVED_METRICS
from rules.names.process import *
from rules.names.process import PROCESS_METRICS

# In the order in which they are exposed.
SELF_METRICS: Final = (
    *WATCHING_METRICS,
    *ALERTING_METRICS,
    *BROKER_LOG_METRICS,
    *SCRAPE_METRICS,
    *HISTORY_METRICS,
    *BASELINE_METRICS,
    *PROCESS_METRICS,
)
METRICS: Final = (*OBSERVED_METRICS, *SELF_METRICS)
