"""Bodies as shippers send them, and the lines that they hold."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from rules.facts.identity import BrokerId
from service.api.core.problems import ProblemError
from service.api.ingest.body import MAX_LINES, MAX_STREAMS, Sent, delivery_of
from service.api.ingest.broker_body import broker_reading
from service.api.ingest.query import IngestQuery
from service.observe.log_submissions import Delivery, Stream

NDJSON = "application/x-ndjson"
JSON = "application/json"
TEXT = "text/plain"
ONE = BrokerId(1)
FIRST = (
    "[2026-11-21 11:56:40,159] ERROR [ReplicaManager broker=1] Error processing append operation"
)
SECOND = "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number"


def sent(
    body: str | bytes, kind: str = TEXT, *, encoding: str = "", key: str | None = None, **query: Any
) -> Sent:
    return Sent(
        body=body.encode() if isinstance(body, str) else body,
        content_type=kind,
        content_encoding=encoding,
        reading=broker_reading(IngestQuery(**query)),
        key=key,
    )


def lines(body: object, kind: str = JSON, **query: Any) -> dict[Stream, list[bytes]]:
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    found = delivery_of(sent(text, kind, **query)).lines
    return {stream: list(held) for stream, held in found.items()}


def rejection(body: str | bytes, kind: str = JSON, **query: Any) -> ProblemError:
    with pytest.raises(ProblemError) as told:
        delivery_of(sent(body, kind, **query))
    return told.value


@pytest.mark.parametrize("body", ["a\nb\n", "a\nb"])
def test_text_is_cut_into_lines(body: str) -> None:
    assert lines(body, TEXT) == {Stream("http"): [b"a", b"b"]}


def test_lines_keep_their_bytes() -> None:
    body = b"\xff\xfe\0 \r\n\n\x1b[31m\n"
    assert lines(body, TEXT) == {Stream("http"): [b"\xff\xfe\0 \r", b"", b"\x1b[31m"]}


@pytest.mark.parametrize("kind", [TEXT, JSON, NDJSON])
def test_an_empty_body_holds_nothing(kind: str) -> None:
    assert lines("", kind) == {}


def test_the_query_says_whose_text_it_is() -> None:
    assert list(lines("a", TEXT, source="broker-a", broker_id=1)) == [Stream("broker-a", ONE)]
    assert list(lines("a", TEXT, broker_id=1)) == [Stream("broker-1", ONE)]


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "Text/Plain",
        "text/plain; charset=utf-8",
        'text/plain;charset="UTF-8"',
        "text/plain; charset=us-ascii; x=y",
        "text/plain; charset=ISO-8859-1",
    ],
)
def test_text_in_a_charset_that_holds_ascii_is_taken(kind: str) -> None:
    assert lines("a", kind) == {Stream("http"): [b"a"]}


def test_fluent_bit_names_the_line_log_and_sends_an_array_or_lines() -> None:
    records = [{"date": 1795262200.159, "log": FIRST}, {"date": 1795262200.16, "log": SECOND}]
    expected = {Stream("http"): [FIRST.encode(), SECOND.encode()]}
    assert lines(records) == expected
    assert lines("\n".join(map(json.dumps, records)), NDJSON) == expected
    assert lines("".join(map(json.dumps, records))) == expected, "json_stream has no newlines"


def test_vector_names_the_line_message_and_the_machine_host() -> None:
    record = {
        "file": "/var/log/kafka/server.log",
        "host": "kafka-1",
        "message": FIRST,
        "source_type": "file",
        "timestamp": "2026-11-21T11:56:40.159Z",
    }
    stream = Stream("kafka-1", file="/var/log/kafka/server.log")
    assert lines([record]) == {stream: [FIRST.encode()]}
    assert lines(json.dumps(record) + "\n", NDJSON) == {stream: [FIRST.encode()]}


def test_loki_pushes_streams_of_labels_and_pairs() -> None:
    push = {
        "streams": [
            {
                "stream": {"host": "kafka-1", "filename": "/a.log", "broker_id": "1"},
                "values": [["1795262200159000000", FIRST], ["1795262200159000001", SECOND, {}]],
            },
            {"stream": {"job": "kafka"}, "values": [["1", "other"]]},
            {"stream": {}, "values": []},
        ]
    }
    assert lines(push) == {
        Stream("kafka-1", ONE, "/a.log"): [FIRST.encode(), SECOND.encode()],
        Stream("http"): [b"other"],
    }


def test_a_record_that_a_shipper_joined_is_its_physical_lines() -> None:
    assert lines({"message": f"{FIRST}\n{SECOND}\n"}) == {
        Stream("http"): [FIRST.encode(), SECOND.encode()]
    }


def test_lines_of_several_brokers_are_kept_apart_each_in_order() -> None:
    records = [{"message": f"{n}", "broker_id": n % 2} for n in range(6)]
    assert lines(records) == {
        Stream("broker-0", BrokerId(0)): [b"0", b"2", b"4"],
        Stream("broker-1", ONE): [b"1", b"3", b"5"],
    }


@pytest.mark.parametrize(
    ("fields", "query", "stream"),
    [
        ({}, {}, Stream("http")),
        ({"source": "a", "host": "b"}, {}, Stream("a")),
        ({"host": "b", "pod": "c"}, {}, Stream("c")),
        ({"host": "node", "kubernetes": {"pod_name": "kafka-0"}}, {}, Stream("kafka-0")),
        ({"host": "b", "kubernetes": "x"}, {}, Stream("b")),
        ({"host": "b", "kubernetes": {"pod_name": 7}}, {}, Stream("b")),
        ({"source": "stdout", "pod": "c", "host": "b"}, {}, Stream("c")),
        ({"pod": "kafka-0"}, {}, Stream("kafka-0")),
        ({"instance": "kafka-0:9404"}, {}, Stream("kafka-0:9404")),
        ({"source": "stdout", "broker_id": 1}, {"source": "q"}, Stream("q", ONE)),
        ({"broker_id": 2, "host": "b"}, {"broker_id": 1}, Stream("b", ONE)),
        ({"broker_id": "1"}, {}, Stream("broker-1", ONE)),
        ({"broker_id": None}, {}, Stream("http")),
        ({"broker_id": ""}, {}, Stream("http")),
        ({"host": {"name": "x"}, "source": 7, "file": ["x"]}, {}, Stream("http")),
        ({"host": "", "source": "\n", "file": "a\0b"}, {}, Stream("http")),
        ({"host": "x" * 201, "file": "x" * 201}, {}, Stream("http")),
        ({"file": "a.log", "filename": "b.log"}, {}, Stream("http", file="a.log")),
        ({"filename": "b.log"}, {"source": "q"}, Stream("q", file="b.log")),
    ],
)
def test_the_query_wins_and_then_the_record_says_whose_line_it_is(
    fields: dict[str, Any], query: dict[str, Any], stream: Stream
) -> None:
    assert list(lines({"message": "m", **fields}, **query)) == [stream]


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({"message": "m", "log": "l", "line": "x"}, b"m"),
        ({"log": "l", "line": "x"}, b"l"),
        ({"message": None, "log": "l"}, b"l"),
        ({"line": "x"}, b"x"),
        ({"message": ""}, b""),
        ({"message": "\ud800 \0"}, b"? \0"),
    ],
)
def test_the_line_is_the_first_text_of_three_names(record: dict[str, Any], line: bytes) -> None:
    assert lines(record) == {Stream("http"): [line]}


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({}, "the record has no text named message, log, line"),
        ({"message": 7, "log": ["x"]}, "the record has no text named message, log, line"),
        ({"streams": {}}, "`streams` and `values` are lists"),
        ({"streams": [{"stream": {}}]}, "`streams` and `values` are lists"),
        ({"streams": [{"values": []}]}, "an element of `streams` has no labels named `stream`"),
        ({"streams": ["x"]}, "an element of `streams` has no labels named `stream`"),
        ({"streams": [{"stream": {}, "values": ["x"]}]}, "an element of `values` is no pair"),
        ({"streams": [{"stream": {}, "values": [["1"]]}]}, "an element of `values` is no pair"),
        ({"streams": [{"stream": {}, "values": [["1", 2]]}]}, "an element of `values` is no pair"),
        ({"message": "m", "broker_id": "one"}, "broker_id is not a valid broker id"),
        ({"message": "m", "broker_id": -1}, "broker_id is not a valid broker id"),
        ({"message": "m", "broker_id": 2**31}, "broker_id is not a valid broker id"),
        ({"message": "m", "broker_id": "9" * 11}, "broker_id is not a valid broker id"),
        ({"message": "m", "broker_id": True}, "broker_id is not a valid broker id"),
        ({"message": "m", "broker_id": 1.0}, "broker_id is not a valid broker id"),
        ({"message": "m", "broker_id": "²"}, "broker_id is not a valid broker id"),
    ],
)
def test_a_record_that_cannot_be_used_is_told_with_its_line(
    record: dict[str, Any], why: str
) -> None:
    told = rejection('{"message": "first"}\n' + json.dumps(record), NDJSON)
    assert told.status == 400
    assert told.detail.startswith(f"line 2 of the body: {why}")


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "application/x-www-form-urlencoded",
        "application/msgpack",
        "application/octet-stream",
        "application/xml",
        "text/html",
        "text/plain; charset=utf-16",
        "multipart/form-data; boundary=x",
        "\0",
    ],
)
def test_another_kind_of_body_is_rejected(kind: str) -> None:
    told = rejection("a", kind)
    assert (told.status, "text/plain in UTF-8" in told.detail) == (415, True)


@pytest.mark.parametrize("kind", [TEXT, JSON, NDJSON])
def test_what_is_packed_is_unpacked_first(kind: str) -> None:
    body = gzip.compress(b'{"message": "m"}\n')
    assert len(delivery_of(sent(body, kind, encoding="gzip")).lines) == 1


def test_a_million_tiny_lines_are_rejected() -> None:
    told = rejection("a\n" * 1_000_000, TEXT)
    assert (told.status, told.detail) == (413, f"a request may have up to {MAX_LINES} lines")
    assert len(lines("a\n" * MAX_LINES, TEXT)[Stream("http")]) == MAX_LINES


@pytest.mark.parametrize(
    "body",
    [
        '{"line":""}' * (MAX_LINES + 1),
        json.dumps({"line": "\n" * (MAX_LINES + 2)}),
        json.dumps({"streams": [{"stream": {}, "values": [["1", ""]] * (MAX_LINES + 1)}]}),
    ],
)
def test_so_are_as_many_in_json(body: str) -> None:
    assert rejection(body, JSON).status == 413


def test_too_many_sources_in_one_request_are_rejected() -> None:
    records = [json.dumps({"message": "m", "host": f"h{n}"}) for n in range(MAX_STREAMS + 1)]
    told = rejection("\n".join(records), NDJSON)
    assert told.status == 400
    assert told.detail == f"line {MAX_STREAMS + 1} of the body: a request may name 100 sources"


def digest(body: str, kind: str = TEXT, **given: Any) -> str:
    return delivery_of(sent(body, kind, **given)).digest


def test_the_same_request_has_the_same_digest_and_another_has_another() -> None:
    assert digest("a") == digest("a")
    bodies = [digest("a"), digest("b"), digest("a", source="s"), digest("a", broker_id=1)]
    others = [digest("a", time_zone="Europe/Berlin"), digest('{"line": "a"}', JSON)]
    assert len({*bodies, *others}) == 6
    packed = sent(gzip.compress(b"a"), encoding="gzip")
    assert delivery_of(packed).digest == digest("a"), "however it was packed"


def test_key_and_zone_go_on() -> None:
    made: Delivery = delivery_of(sent("a", key="k", time_zone="+02:00"))
    assert (made.key, str(made.zone)) == ("k", "UTC+02:00")
