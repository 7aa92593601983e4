"""A scraper gets the format it prefers among ours, under the exact content type."""

from __future__ import annotations

import pytest
from prometheus_client.exposition import choose_encoder

from service.metrics.formats import Syntax, choose_format

OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"
PLAIN_1 = "text/plain; version=1.0.0; charset=utf-8"

PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3_TEXT_FIRST = (
    "text/plain;version=1.0.0;escaping=underscores;q=0.6,"
    "application/openmetrics-text;version=1.0.0;escaping=underscores;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3_PROTOBUF = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;"
    "q=0.7,application/openmetrics-text;version=1.0.0;escaping=values;q=0.6"
)
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param(None, PLAIN, id="no header"),
        pytest.param("", PLAIN, id="empty header"),
        pytest.param("*/*", PLAIN, id="curl"),
        pytest.param(BROWSER, PLAIN, id="browser"),
        pytest.param(PROMETHEUS_3, f"{OPEN}; escaping=allow-utf-8", id="Prometheus 3"),
        pytest.param(
            PROMETHEUS_3_TEXT_FIRST, f"{PLAIN_1}; escaping=underscores", id="text 1.0.0 first"
        ),
        pytest.param(PROMETHEUS_3_PROTOBUF, f"{OPEN}; escaping=values", id="protobuf is not ours"),
        pytest.param(PROMETHEUS_2, OPEN, id="Prometheus 2"),
        pytest.param("application/openmetrics-text", OPEN, id="OpenMetrics of any version"),
        pytest.param("application/openmetrics-text;version=0.0.1", PLAIN, id="OpenMetrics 0.0.1"),
        pytest.param("application/openmetrics-text;version=2.0.0", PLAIN, id="OpenMetrics 2"),
        pytest.param("text/plain", PLAIN, id="text of any version"),
        pytest.param("text/plain;version=1.0.0", PLAIN_1, id="text 1.0.0 without escaping"),
        pytest.param("text/plain;version=0.0.4;escaping=values", PLAIN, id="0.0.4 has no escaping"),
        pytest.param(
            "text/plain;version=1.0.0;escaping=dots", f"{PLAIN_1}; escaping=underscores", id="dots"
        ),
        pytest.param(
            "text/plain;version=0.0.4;q=0.2, application/openmetrics-text;version=1.0.0;q=0.9",
            OPEN,
            id="quality before order",
        ),
        pytest.param(
            "application/openmetrics-text;version=1.0.0;q=0, text/plain;version=0.0.4;q=0.1",
            PLAIN,
            id="quality 0 is a rejection",
        ),
        pytest.param(
            "application/openmetrics-text;q=high, text/plain;version=1.0.0;q=0.1",
            PLAIN_1,
            id="quality that is no number",
        ),
        pytest.param(
            'APPLICATION/OpenMetrics-Text ; Version="1.0.0" ; Q=1', OPEN, id="case, space, quotes"
        ),
        pytest.param("application/json", PLAIN, id="nothing of ours"),
        pytest.param(",;,=;q", PLAIN, id="nonsense"),
    ],
)
def test_content_type(accept: str | None, expected: str) -> None:
    chosen = choose_format(accept)
    assert chosen.content_type == expected
    assert (chosen.syntax is Syntax.OPENMETRICS) == expected.startswith("application/openmetrics")


@pytest.mark.parametrize("accept", ["", PROMETHEUS_3, PROMETHEUS_3_TEXT_FIRST])
def test_prometheus_client_chooses_the_same(accept: str) -> None:
    _, content_type = choose_encoder(accept)
    assert choose_format(accept).content_type == content_type
