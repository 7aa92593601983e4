"""The rules that judge by baselines, and the metrics of history that each of them judges."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rules.baseline.series import Metric

# Which of the lags counts depends on the group's isolation level, and on whether seconds are known.
RULE_METRICS: Final[Mapping[str, tuple[Metric, ...]]] = MappingProxyType(
    {
        "consumer_lag_unusual": (
            Metric.READ_COMMITTED_LAG,
            Metric.READ_UNCOMMITTED_LAG,
            Metric.READ_COMMITTED_LAG_SECONDS,
            Metric.READ_UNCOMMITTED_LAG_SECONDS,
        ),
        "produce_rate_unusual": (Metric.PRODUCE_RATE,),
        "record_error_rate_unusual": (Metric.RECORD_ERROR_RATE,),
        "reordering_rate_unusual": (Metric.SEQUENCE_ERRORS,),
        "open_span_unusual": (Metric.OPEN_SPAN,),
    }
)
