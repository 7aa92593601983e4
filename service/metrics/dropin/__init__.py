"""Metrics under the names of other exporters, so that dashboards, alerts and autoscalers go on."""

from typing import Final

from service.metrics.dropin.exporter import Exporter
from service.metrics.dropin.kafka_exporter import KAFKA_EXPORTER
from service.metrics.dropin.kafka_lag_exporter import KAFKA_LAG_EXPORTER
from service.metrics.dropin.kminion import KMINION

__all__ = ["EXPORTERS", "KAFKA_EXPORTER", "KAFKA_LAG_EXPORTER", "KMINION"]

EXPORTERS: Final[tuple[Exporter, ...]] = (KAFKA_EXPORTER, KMINION, KAFKA_LAG_EXPORTER)
