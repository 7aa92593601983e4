"""The page of metrics is what the last round wrote, in the form that a scraper asks for."""

from __future__ import annotations

import gzip

import pytest
from starlette.testclient import TestClient

from service.api.status.metrics import takes_gzip
from service.metrics.dropin import EXPORTERS
from service.metrics.dropin.exporter import Exporter
from service.metrics.formats import OPENMETRICS_1_0_0, TEXT_0_0_4
from service.metrics.totals import SelfMetrics
from tests.factories import snapshot
from tests.unit.service.api.given import World


@pytest.fixture
def world() -> World:
    made = World()
    made.exposition.update(snapshot(), SelfMetrics(version="1.2.3"))
    return made


@pytest.fixture
def client(world: World) -> TestClient:
    return world.client()


def test_the_body_is_that_of_the_exposition(world: World, client: TestClient) -> None:
    answer = client.get("/metrics", headers={"Accept-Encoding": "identity"})
    assert answer.content == world.exposition.body(None, gzip=False)[0]
    assert answer.headers["content-type"] == TEXT_0_0_4
    assert "content-encoding" not in answer.headers
    assert answer.headers["vary"] == "Accept, Accept-Encoding"


def test_a_scraper_gets_the_format_and_encoding_that_it_asks_for(client: TestClient) -> None:
    asked = {"Accept": "application/openmetrics-text", "Accept-Encoding": "gzip"}
    with client.stream("GET", "/metrics", headers=asked) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-type"] == OPENMETRICS_1_0_0
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw).endswith(b"# EOF\n")


@pytest.mark.parametrize("exporter", EXPORTERS, ids=lambda exporter: exporter.name)
def test_each_exporter_has_a_page_in_the_same_formats(
    world: World, client: TestClient, exporter: Exporter
) -> None:
    path = f"/metrics/{exporter.name}"
    answer = client.get(path, headers={"Accept-Encoding": "identity"})
    body, _ = world.exposition.body(None, gzip=False, exporter=exporter)
    assert answer.content == body
    assert b"tidemark_" not in body
    assert answer.headers["content-type"] == TEXT_0_0_4
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    asked = {"Accept": "application/openmetrics-text", "Accept-Encoding": "gzip"}
    with client.stream("GET", path, headers=asked) as zipped:
        raw = b"".join(zipped.iter_raw())
    assert zipped.headers["content-type"] == OPENMETRICS_1_0_0
    assert gzip.decompress(raw).endswith(b"# EOF\n")


def test_an_exporter_that_is_none_has_no_page(client: TestClient) -> None:
    assert client.get("/metrics/burrow").status_code == 404
    assert client.get("/metrics/").status_code == 404


def test_head_has_the_headers_of_get(client: TestClient) -> None:
    got, head = client.get("/metrics"), client.head("/metrics")
    assert head.status_code == 200
    assert head.headers["content-length"] == got.headers["content-length"]


def test_parameters_of_a_scraper_are_no_error(client: TestClient) -> None:
    assert client.get("/metrics?job=tidemark").status_code == 200


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", False),
        ("identity", False),
        ("gzip", True),
        ("GZIP", True),
        ("x-gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*", True),
        ("*;q=0", False),
        ("gzip;q=nonsense", False),
        ("br", False),
        (";", False),
    ],
)
def test_accept_encoding_is_read_as_the_standard_says(header: str, *, expected: bool) -> None:
    assert takes_gzip(header) is expected
