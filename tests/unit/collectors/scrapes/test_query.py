"""What a Prometheus server is asked and answers, and answers that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from collectors.scrapes.answer import NOTHING, Samples
from collectors.scrapes.query import error_in, query, read_answer
from rules.facts.gap import GapCause

NAME = "kafka_producer_topic_record_error_total"
LABELS = {"__name__": NAME, "client_id": "a", "topic": "orders", "instance": "app-1:8081"}


def answer(*values: object, **more: Any) -> bytes:
    """Return an answer with one series per value, each of a client of its own."""
    result: list[object] = [
        {"metric": LABELS | {"client_id": str(number)}, "value": [1763762400.1, value]}
        for number, value in enumerate(values)
    ]
    data: dict[str, object] = {"resultType": "vector", "result": result}
    return json.dumps({"status": "success", "data": data, **more}).encode()


def read(body: bytes, *, max_series: int = 100) -> Samples:
    return read_answer(body, max_series=max_series)


def told(samples: Samples) -> dict[str | None, float]:
    return {one.client_id: value for one, value in samples.values.items()}


def causes(samples: Samples) -> list[GapCause]:
    return [one.cause for one in samples.failures]


def test_series_are_taken_with_the_process_that_they_are_of() -> None:
    seen = read(answer("5", "0"))
    assert told(seen) == {"0": 5.0, "1": 0.0}
    assert {one.place for one in seen.values} == {"app-1:8081"}
    assert {one.topic for one in seen.values} == {"orders"}
    assert (seen.is_whole, seen.failures) == (True, ())


def test_matchers_are_added_to_what_is_asked() -> None:
    assert query("").startswith('{__name__=~"')
    assert query("").endswith('"}')
    assert query('cluster="prod"').endswith('",cluster="prod"}')


def test_a_server_without_such_series_says_so_and_is_whole() -> None:
    seen = read(answer())
    assert (seen.is_whole, seen.failures) == (True, (NOTHING,))


def test_a_warning_means_that_something_may_be_missing() -> None:
    seen = read(answer("1", warnings=["no store matched\nthe query", "another"]))
    assert told(seen) == {"0": 1.0}
    assert not seen.is_whole
    assert [one.why for one in seen.failures] == [
        "the server warns: no store matched the query",
    ]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300"])
def test_an_absurd_value_is_no_value(value: str) -> None:
    seen = read(answer("1", value))
    assert told(seen) == {"0": 1.0}
    assert causes(seen) == [GapCause.IMPOSSIBLE_VALUE]


@pytest.mark.parametrize("value", ["many", "", 5, None, ["1"]])
def test_a_series_that_cannot_be_read_is_counted_and_the_rest_is_taken(value: object) -> None:
    seen = read(answer("1", value))
    assert told(seen) == {"0": 1.0}
    assert (seen.is_whole, causes(seen)) == (False, [GapCause.UNREADABLE])


@pytest.mark.parametrize(
    "one", [None, 1, {}, {"metric": {}}, {"metric": [], "value": [1, "1"]}, {"metric": {"a": 1}}]
)
def test_a_series_of_another_shape_is_counted(one: object) -> None:
    data = {"resultType": "vector", "result": [one]}
    seen = read(json.dumps({"status": "success", "data": data}).encode())
    assert causes(seen) == [GapCause.UNREADABLE]


def test_more_series_than_are_kept_are_told() -> None:
    seen = read(answer("1", "2", "3"), max_series=2)
    assert told(seen) == {"0": 1.0, "1": 2.0}
    assert (seen.is_whole, causes(seen)) == (False, [GapCause.LIMIT])


NO_ANSWERS = {
    "HTML": b"<html></html>",
    "nothing": b"",
    "no UTF-8": b"\xff\xfe{}",
    "another document": b"[]",
    "another API": b'{"status":"ok"}',
    "no vector": b'{"status":"success","data":{"resultType":"matrix","result":[]}}',
    "a vector that is none": b'{"status":"success","data":{"resultType":"vector","result":{}}}',
    "no data": b'{"status":"success"}',
    "too deep": b"[" * 200_000,
    "too many digits": b'{"status":' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("body", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_what_is_no_answer_is_told_as_such(body: bytes) -> None:
    seen = read(body)
    assert (dict(seen.values), seen.is_whole) == ({}, False)
    assert causes(seen) == [GapCause.UNREADABLE]


def test_a_servers_own_words_are_told_on_one_line_and_cut() -> None:
    said = json.dumps({"status": "error", "error": "parse error:\n\x1b[31m" + "x" * 500}).encode()
    why = error_in(said)
    assert why is not None
    assert why.startswith("the server says: parse error:  [31mxxx")
    assert len(why) < 250
    assert error_in(b"<html>") is None
    assert error_in(b'{"error": 5}') is None
