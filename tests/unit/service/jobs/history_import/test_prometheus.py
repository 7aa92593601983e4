"""Answers of a Prometheus: series, and which of its errors mean what."""

from __future__ import annotations

import httpx2
import pytest

from rules.errors import AuthenticationError, CollectError, RequestError
from service.jobs.history_import import prometheus
from service.jobs.history_import.prometheus import (
    NotAnsweredError,
    PrometheusClient,
    TooMuchError,
)

SECRET = "s3cret-of-ours"  # noqa: S105 - one of this test
SERIES = {"metric": {"topic": "a"}, "values": [[1.5, "2"], [61.5, "NaN"]]}
MATRIX = {"status": "success", "data": {"resultType": "matrix", "result": [SERIES]}}


def client(status: int, body: object, requests: list[httpx2.Request]) -> PrometheusClient:
    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        return httpx2.Response(status, json=body)

    return PrometheusClient(
        "http://prometheus:9090/x/", token=SECRET, transport=httpx2.MockTransport(answer)
    )


def test_series_come_with_their_times_and_values() -> None:
    requests: list[httpx2.Request] = []
    with client(200, MATRIX | {"warnings": ["a store is away"]}, requests) as asked:
        answer = asked.query_range("up", 0, 60, 60)
    (series,) = answer.series
    assert series.labels == {"topic": "a"}
    assert series.at_ms.tolist() == [1500, 61_500]
    assert series.values[0] == 2
    assert answer.warnings == ("a store is away",)
    assert str(requests[0].url) == "http://prometheus:9090/x/api/v1/query_range"
    assert requests[0].headers["authorization"] == f"Bearer {SECRET}"


def error(text: str) -> dict[str, str]:
    return {"status": "error", "errorType": "x", "error": text}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, error("exceeded maximum resolution of 11,000 points per timeseries"), TooMuchError),
        (422, error("query processing would load too many samples into memory"), TooMuchError),
        (503, error("query timed out in expression evaluation"), TooMuchError),
        (503, error("TSDB not ready"), NotAnsweredError),
        (502, "<html>", NotAnsweredError),
        (400, error("1:3: parse error"), RequestError),
        (401, "denied", AuthenticationError),
        (200, {"hello": 1}, CollectError),
        (200, {"status": "success", "data": {"resultType": "scalar"}}, RequestError),
    ],
)
def test_an_error_says_whether_less_or_later_may_succeed(
    status: int, body: object, expected: type[Exception]
) -> None:
    with client(status, body, []) as asked, pytest.raises(expected) as raised:
        asked.query_range("up", 0, 60, 60)
    assert SECRET not in str(raised.value)


def test_an_answer_that_is_too_large_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus, "MOST_BYTES", 10)
    with client(200, MATRIX, []) as asked, pytest.raises(TooMuchError):
        asked.query_range("up", 0, 60, 60)
