"""Reads an exposition back with prometheus-client's parsers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from rules.facts.snapshot import Snapshot
from rules.time_lag import TimeLags
from service.metrics.exposition import Exposition
from service.metrics.open_transactions import OpenTransactions
from service.metrics.selection import SeriesLimits
from service.metrics.totals import SelfMetrics

TEXT = "text/plain; version=0.0.4"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
TOTALS = SelfMetrics(version="0.1.0")

Labels = frozenset[tuple[str, str]]
Samples = Mapping[tuple[str, Labels], float]


@dataclass(frozen=True, slots=True)
class Family:
    """A parsed family; samples in no order, for formats give them none."""

    type: str
    help: str
    unit: str
    samples: Samples


def families(body: bytes, accept: str) -> dict[str, Family]:
    """Parse a body strictly; no series may come twice."""
    parse = parse_openmetrics if accept == OPENMETRICS else parse_text
    found: Iterable[Metric] = parse(body.decode())
    return {family.name: _family(family) for family in found}


def rendered(
    seen: Snapshot,
    accept: str = TEXT,
    *,
    totals: SelfMetrics = TOTALS,
    limits: SeriesLimits | None = None,
    found: OpenTransactions | None = None,
    lags: TimeLags | None = None,
) -> dict[str, Family]:
    """Return what a scraper of a fresh exposition gets."""
    exposition = Exposition(limits)
    exposition.update(seen, totals, found, lags)
    body, _ = exposition.body(accept, gzip=False)
    return families(body, accept)


def samples(found: Mapping[str, Family]) -> dict[tuple[str, Labels], float]:
    """Return all samples of all families."""
    return {key: value for family in found.values() for key, value in family.samples.items()}


def labelled(found: Mapping[str, Family], name: str, *wanted: str) -> dict[tuple[str, ...], float]:
    """Return the values of one metric by the values of the labels `wanted`, empty where it has none."""
    return {
        tuple(dict(labels).get(label, "") for label in wanted): value
        for (sample, labels), value in samples(found).items()
        if sample == name
    }


def _family(family: Metric) -> Family:
    values = {
        # Prometheus keeps floats; this parser alone would read a whole number as an int.
        (sample.name, frozenset(sample.labels.items())): float(sample.value)
        for sample in family.samples
    }
    assert len(values) == len(family.samples), f"{family.name} has the same series twice"
    return Family(family.type, family.documentation, family.unit, values)
