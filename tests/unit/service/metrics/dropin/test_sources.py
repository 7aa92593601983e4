"""Each page has the names, types and labels of its exporter, and what it lacks is declared."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from rules.names import METRICS, MetricType
from service.metrics.dropin import EXPORTERS
from service.metrics.dropin.documentation import page_name, with_names
from service.metrics.dropin.exporter import Exporter
from tests.unit.service.metrics.busy import LAGS, TOTALS_OF_A_DAY
from tests.unit.service.metrics.dropin.reading import rendered
from tests.unit.service.metrics.dropin.sources import LIBRARIES, SOURCES
from tests.unit.service.metrics.dropin.whole import whole_snapshot
from tests.unit.service.metrics.reading import OPENMETRICS, TEXT

DOCS = Path(__file__).parents[5] / "docs"

each = pytest.mark.parametrize("exporter", EXPORTERS, ids=lambda exporter: exporter.name)
formats = pytest.mark.parametrize("accept", [TEXT, OPENMETRICS])


def test_every_exporter_has_its_source() -> None:
    assert [exporter.name for exporter in EXPORTERS] == list(SOURCES)


@each
def test_every_name_of_the_source_is_shown_or_declared_missing(exporter: Exporter) -> None:
    source = set(SOURCES[exporter.name])
    shown = {metric.name for metric in exporter.metrics}
    assert shown <= source
    for name in source - shown:
        assert any(fnmatchcase(name, missing) for missing in exporter.missing), name
    for missing in exporter.missing:
        assert missing in LIBRARIES[exporter.name] or any(
            fnmatchcase(name, missing) for name in source - shown
        ), f"{missing} is not missing"
    assert set(LIBRARIES[exporter.name]) <= set(exporter.missing)


@each
def test_types_and_labels_are_those_of_the_source(exporter: Exporter) -> None:
    lacking = set(exporter.missing_labels)
    for metric in exporter.metrics:
        kind, labels = SOURCES[exporter.name][metric.name]
        assert metric.type == kind, metric.name
        assert set(metric.labels) == set(labels) - lacking, metric.name
    assert lacking <= {
        name for metric in exporter.metrics for name in SOURCES[exporter.name][metric.name][1]
    }


@each
@formats
def test_a_page_has_every_metric_with_these_labels_and_none_besides(
    exporter: Exporter, accept: str
) -> None:
    page = rendered(exporter, whole_snapshot(), accept, totals=TOTALS_OF_A_DAY, lags=LAGS)
    is_text = accept == TEXT
    assert set(page) == {metric.family for metric in exporter.metrics}
    for metric in exporter.metrics:
        family = page[metric.family]
        is_seconds = metric.unit == "seconds" and not is_text
        assert (family.type, family.help) == (metric.type, metric.help)
        assert family.unit == ("seconds" if is_seconds else "")
        assert {name for name, _ in family.samples} == {metric.name}
        for _, labels in family.samples:
            assert {name for name, _ in labels} == set(metric.labels), metric.name


@each
def test_tidemark_s_own_names_beside_them_exist(exporter: Exporter) -> None:
    own = {metric.name for metric in METRICS}
    named = {
        name for entry in exporter.entries for name in re.findall(r"tidemark_\w+", entry.native)
    }
    assert named
    assert named <= own
    assert not own & {metric.name for metric in exporter.metrics}


@each
def test_the_names_on_its_page_are_up_to_date(exporter: Exporter) -> None:
    page = (DOCS / page_name(exporter)).read_text(encoding="utf-8")
    assert page == with_names(page, exporter)
    assert f"metrics_path: /metrics/{exporter.name}" in page
    named = set(re.findall(r"tidemark_\w+\b", page))
    assert named <= {metric.name for metric in METRICS}


@each
def test_no_help_text_is_empty_or_goes_on_without_an_end(exporter: Exporter) -> None:
    for metric in exporter.metrics:
        assert metric.help.endswith("."), metric.name
        assert metric.type in (MetricType.GAUGE, MetricType.COUNTER)
