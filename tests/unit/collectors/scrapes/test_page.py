"""Pages of metrics: what is taken of them, and what is wrong with those that are none."""

from __future__ import annotations

import pytest

from collectors.scrapes.answer import ERRORS_NOT_NAMED, NOTHING, Samples
from collectors.scrapes.page import MAX_LINE, STEP, read_page
from collectors.scrapes.selection import Quantity
from rules.facts.gap import GapCause

# What the JMX exporter's agent 1.0.1 says of a Java producer without any rules, shortened.
AGENT = b"""\
# HELP kafka_producer_producer_metrics_record_error kafka.producer:name=null,type=producer-metrics
# TYPE kafka_producer_producer_metrics_record_error untyped
kafka_producer_producer_metrics_record_error{client_id="jprod"} 5.0
kafka_producer_producer_metrics_record_error_rate{client_id="jprod"} 0.162
kafka_producer_producer_metrics_record_retry{client_id="jprod"} 7.0
kafka_producer_producer_metrics_record_send_total{client_id="jprod"} 700.0
kafka_producer_producer_topic_metrics_record_error{client_id="jprod",topic="orders",} 5.0
jvm_threads_current 21.0
"""
OPENMETRICS = b"""\
# TYPE kafka_producer_record_error counter
kafka_producer_record_error_total{client_id="producer-1",kafka_version="4.1.1"} 3.0 # {trace_id="a b"} 1.0 1.7e9
# TYPE kafka_producer_record_retry counter
kafka_producer_record_retry_total{client_id="producer-1",kafka_version="4.1.1"} 4.0 1763762400.5
# EOF
"""
BROKER = b"""\
kafka_network_requestmetrics_errors_total{error="OUT_OF_ORDER_SEQUENCE_NUMBER",request="Produce"} 4.0
kafka_network_requestmetrics_errors_total{error="NONE",request="Produce"} 11.0
kafka_controller_controllerstats_uncleanleaderelections_total 1.0
"""
# Of MSK's open monitoring (port 11001), whose exporter has no rules.
MSK = b"""\
# HELP kafka_network_RequestMetrics_Count Attribute exposed for management
# TYPE kafka_network_RequestMetrics_Count untyped
kafka_network_RequestMetrics_Count{name="RequestsPerSec",request="Produce",version="9",} 811.0
kafka_network_RequestMetrics_Count{name="ErrorsPerSec",request="Produce",error="NONE",} 809.0
kafka_network_RequestMetrics_Count{name="ErrorsPerSec",request="Produce",error="OUT_OF_ORDER_SEQUENCE_NUMBER",} 2.0
kafka_network_RequestMetrics_OneMinuteRate{name="ErrorsPerSec",request="Produce",error="NOT_LEADER_OR_FOLLOWER",} 0.1
kafka_controller_ControllerStats_Count{name="UncleanLeaderElectionsPerSec",} 1.0
"""
# Of OpenTelemetry's JMX metrics, by the collector's Prometheus exporter.
OPENTELEMETRY = b"""\
# TYPE kafka_request_failed_total counter
kafka_request_failed_total{job="kafka",type="produce"} 2
# TYPE kafka_unclean_election_rate_total counter
kafka_unclean_election_rate_total{job="kafka"} 1
"""
# Of Confluent Cloud's Metrics API, in its export form.
CONFLUENT = b"""\
# HELP confluent_kafka_server_request_count The delta count of requests received over the network.
# TYPE confluent_kafka_server_request_count gauge
confluent_kafka_server_request_count{kafka_id="lkc-1",principal_id="sa-1",type="Produce",} 42.0 1764000000000
confluent_kafka_server_active_connection_count{kafka_id="lkc-1",principal_id="sa-1",} 3.0 1764000000000
"""
ONE = b'kafka_producer_record_error_total{client_id="a"} 1\n'


def read(body: bytes, *, is_openmetrics: bool = False, max_series: int = 100) -> Samples:
    return read_page(body, is_openmetrics=is_openmetrics, max_series=max_series)


def told(samples: Samples) -> list[tuple[Quantity, bool, str | None, str | None, float]]:
    return [
        (one.quantity, one.is_rate, one.client_id or one.request, one.topic or one.error, value)
        for one, value in samples.values.items()
    ]


def causes(samples: Samples) -> list[GapCause]:
    return [one.cause for one in samples.failures]


def test_the_page_of_a_java_producer_is_read() -> None:
    seen = read(AGENT)
    assert told(seen) == [
        (Quantity.RECORD_ERRORS, False, "jprod", None, 5.0),
        (Quantity.RECORD_ERRORS, True, "jprod", None, 0.162),
        (Quantity.RECORD_RETRIES, False, "jprod", None, 7.0),
        (Quantity.RECORD_ERRORS, False, "jprod", "orders", 5.0),
    ]
    assert (seen.is_whole, seen.failures) == (True, ())


def test_openmetrics_with_exemplars_and_times_is_read() -> None:
    seen = read(OPENMETRICS, is_openmetrics=True)
    assert [row[-1] for row in told(seen)] == [3.0, 4.0]
    assert seen.is_whole


def test_openmetrics_without_its_end_is_cut_short() -> None:
    seen = read(OPENMETRICS.removesuffix(b"# EOF\n"), is_openmetrics=True)
    assert len(seen.values) == 2
    assert (seen.is_whole, causes(seen)) == (False, [GapCause.UNREADABLE])


def test_answers_without_an_error_are_left_out() -> None:
    assert told(read(BROKER)) == [
        (Quantity.REQUEST_ERRORS, False, "Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", 4.0),
        (Quantity.UNCLEAN_ELECTIONS, False, None, None, 1.0),
    ]


def test_the_page_of_msk_is_read() -> None:
    seen = read(MSK)
    assert told(seen) == [
        (Quantity.REQUEST_ERRORS, False, "Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", 2.0),
        (Quantity.UNCLEAN_ELECTIONS, False, None, None, 1.0),
    ]
    assert (seen.is_whole, seen.failures) == (True, ())


def test_opentelemetrys_failed_requests_do_not_name_their_errors() -> None:
    seen = read(OPENTELEMETRY)
    assert told(seen) == [(Quantity.UNCLEAN_ELECTIONS, False, None, None, 1.0)]
    assert (seen.is_whole, seen.failures) == (True, (ERRORS_NOT_NAMED,))
    assert read(OPENTELEMETRY + BROKER).failures == ()


def test_confluent_cloud_has_no_errors_of_requests() -> None:
    seen = read(CONFLUENT)
    assert (told(seen), seen.is_whole, seen.failures) == ([], True, (ERRORS_NOT_NAMED,))
    assert causes(seen) == [GapCause.UNSUPPORTED]


def test_a_broker_that_never_rejected_anything_has_an_answer() -> None:
    seen = read(b'kafka_network_requestmetrics_errors_total{error="NONE",request="Fetch"} 1\n')
    assert (seen.values, seen.is_whole, seen.failures) == ({}, True, ())


@pytest.mark.parametrize("body", [b"", b"\n\n", b"# HELP up Up.\n", b"jvm_threads_current 21.0\n"])
def test_a_page_without_anything_that_is_observed_for_says_so_and_is_whole(body: bytes) -> None:
    seen = read(body)
    assert (seen.is_whole, seen.failures) == (True, (NOTHING,))


NO_PAGES = {
    "HTML": b"<!DOCTYPE html>\n<html><body>Sign in</body></html>",
    "JSON": b'{"status":"success"}',
    "prose": b"upstream connect error or disconnect/reset before headers",
    "bytes": bytes(range(1, 256)),
    "a name alone": b"kafka_producer_record_error_total",
    "UTF-16": AGENT.decode().encode("utf-16"),
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
}


@pytest.mark.parametrize("body", NO_PAGES.values(), ids=NO_PAGES)
def test_what_is_no_page_is_told_as_such(body: bytes) -> None:
    seen = read(body)
    assert (dict(seen.values), seen.is_whole) == ({}, False)
    assert causes(seen) == [GapCause.UNREADABLE]


BAD_LINES = {
    "no value": b'kafka_producer_record_error_total{client_id="b"}',
    "a word as its value": b'kafka_producer_record_error_total{client_id="b"} many',
    "labels that do not end": b'kafka_producer_record_error_total{client_id="b',
    "the same label twice": b'kafka_producer_record_error_total{client_id="b",client_id="c"} 1',
    "no UTF-8": b'kafka_producer_record_error_total{client_id="\xff\xfe"} 1',
    "too long": b'kafka_producer_record_error_total{client_id="' + b"x" * MAX_LINE + b'"} 1',
    "too many digits": b'kafka_producer_record_error_total{client_id="b"} ' + b"9" * 4000 + b"x",
    "a name in quotes that do not end": b'{"kafka.producer.record.error.total',
    "a name in quotes alone": b'{"kafka.producer.record.error.total", }',
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_a_line_that_cannot_be_read_is_counted_and_the_rest_is_taken(line: bytes) -> None:
    seen = read(ONE + line + b"\n" + ONE.replace(b'"a"', b'"z"'))
    assert [row[2] for row in told(seen)] == ["a", "z"]
    assert (seen.is_whole, causes(seen)) == (False, [GapCause.UNREADABLE])
    assert seen.failures[0].why == "samples left out: 1 (lines that cannot be read)"


@pytest.mark.parametrize("value", [b"NaN", b"-1", b"1e300", b"+Inf", b"9" * 400])
def test_an_absurd_value_is_no_value(value: bytes) -> None:
    seen = read(ONE + b'kafka_producer_record_error_total{client_id="b"} ' + value + b"\n")
    assert [row[2] for row in told(seen)] == ["a"]
    assert (seen.is_whole, causes(seen)) == (False, [GapCause.IMPOSSIBLE_VALUE])


def test_a_series_with_two_values_has_none() -> None:
    twice = ONE + ONE.replace(b" 1\n", b" 2\n")
    seen = read(twice + ONE.replace(b'"a"', b'"b"'))
    assert [row[2] for row in told(seen)] == ["b"]
    assert causes(seen) == [GapCause.IMPOSSIBLE_VALUE]
    assert read(ONE + ONE).failures == (), "the same twice says the same"


def test_more_series_than_are_kept_are_told() -> None:
    body = b"".join(ONE.replace(b'"a"', b'"%d"' % number) for number in range(5))
    seen = read(body, max_series=3)
    assert [row[2] for row in told(seen)] == ["0", "1", "2"]
    assert (seen.is_whole, causes(seen)) == (False, [GapCause.LIMIT])
    assert read(body, max_series=5).is_whole
    more = b'kafka_network_requestmetrics_errors_total{error="NONE",request="Fetch"} 1\n'
    assert read(body + more, max_series=5).is_whole, "no more of them are wanted"


def test_a_name_in_quotes_is_read() -> None:
    body = b'{"kafka.producer.record.error.total","client.id"="a",topic="o"} 2\n'
    assert told(read(body)) == [(Quantity.RECORD_ERRORS, False, "a", "o", 2.0)]


def test_a_wanted_line_is_found_wherever_it_unchanged_on_a_large_page() -> None:
    filling = b"kafka_server_brokertopicmetrics_bytesin_total 1\n" * (STEP // 48)
    places = [filling[: len(filling) - cut] + b"\n" for cut in range(60)]
    body = b"".join(
        place + ONE.replace(b'"a"', b'"%d"' % number) for number, place in enumerate(places)
    )
    assert [row[2] for row in told(read(body))] == [str(number) for number in range(60)]


def test_lines_with_carriage_returns_and_blanks_around_are_read() -> None:
    assert len(read(b" \t" + ONE.replace(b"\n", b" \r\n")).values) == 1
