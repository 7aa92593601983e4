"""How reading metrics of brokers and clients goes, per endpoint."""

from __future__ import annotations

from typing import Final

from rules.names.metric import CLUSTER_LABELS, Metric, Unit

ENDPOINT_LABELS: Final = (*CLUSTER_LABELS, "endpoint")

SCRAPE_UP: Final = Metric(
    name="tidemark_scrape_up",
    help="Whether the latest scrape of a metrics endpoint succeeded; absent before the first.",
    unit=Unit.FLAG,
    labels=ENDPOINT_LABELS,
)
SCRAPE_DURATION: Final = Metric(
    name="tidemark_scrape_duration_seconds",
    help="Duration of the latest scrape of a metrics endpoint, without parsing the response.",
    unit=Unit.SECONDS,
    labels=ENDPOINT_LABELS,
)
SCRAPE_SAMPLES: Final = Metric(
    name="tidemark_scrape_samples",
    help="Samples that were kept of an endpoint's latest answer: those that Tidemark uses.",
    unit=Unit.SAMPLES,
    labels=ENDPOINT_LABELS,
)

SCRAPE_METRICS: Final = (SCRAPE_UP, SCRAPE_DURATION, SCRAPE_SAMPLES)
