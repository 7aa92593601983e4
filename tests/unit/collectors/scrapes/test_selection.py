"""Spellings of the same metric, as exporters write them; and what only resembles it."""

from __future__ import annotations

import re

import pytest

from collectors.scrapes.selection import (
    NAMES,
    Quantity,
    broker_id_of,
    hosts_of,
    is_absurd,
    series_of,
)

CLIENT = {"client_id": "payments"}
OF_TOPIC = {**CLIENT, "topic": "orders"}

TOTALS = {
    "the agent's default names, 1.0.1": "kafka_producer_producer_metrics_record_error",
    "the agent's default names": "kafka_producer_producer_metrics_record_error_total",
    "the agent's default names, per topic": "kafka_producer_producer_topic_metrics_record_error",
    "the exporter's example for Connect, Strimzi": "kafka_producer_record_error_total",
    "the same per topic": "kafka_producer_topic_record_error_total",
    "Micrometer, which OpenTelemetry writes too": "kafka_producer_record_error_total",
    "a collector of the clients' own": "kafka_producer_topic_metrics_record_error_total",
    "rules that name domain and type": "kafka_producer_producer_record_error_total",
    "KIP-714 by OpenTelemetry": "org_apache_kafka_producer_record_error_total",
    "KIP-714 per topic": "org_apache_kafka_producer_topic_record_error_total",
    "a name in UTF-8": "kafka.producer.record.error.total",
    "names in upper case": "KAFKA_PRODUCER_RECORD_ERROR_TOTAL",
}


@pytest.mark.parametrize("name", TOTALS.values(), ids=TOTALS)
def test_record_errors_are_known_in_every_spelling(name: str) -> None:
    series = series_of(name, OF_TOPIC)
    assert series is not None
    assert (series.quantity, series.is_rate) == (Quantity.RECORD_ERRORS, False)
    assert (series.client_id, series.topic) == ("payments", "orders")
    retries = series_of(name.replace("error", "retry").replace("ERROR", "RETRY"), OF_TOPIC)
    assert retries is not None
    assert retries.quantity is Quantity.RECORD_RETRIES
    rate = series_of(re.sub("([._]total)?$", "_rate", name, count=1, flags=re.IGNORECASE), OF_TOPIC)
    assert rate is not None
    assert rate.is_rate


@pytest.mark.parametrize("label", ["client_id", "clientId", "client-id", "client.id", "CLIENT_ID"])
def test_the_client_is_known_by_every_spelling_of_its_label(label: str) -> None:
    series = series_of("kafka_producer_record_error_total", {label: "payments"})
    assert series is not None
    assert (series.client_id, series.topic) == ("payments", None)


QUOTED = {
    '"orders/1:blue"': "orders/1:blue",
    r'"say \"x\" \\ \* \? \n."': 'say "x" \\ * ? \n.',
    '"': '"',
    '"half': '"half',
}


@pytest.mark.parametrize(("label", "client_id"), QUOTED.items())
def test_a_name_that_java_put_in_quotes_is_the_clients_own(label: str, client_id: str) -> None:
    series = series_of("kafka_producer_record_error_total", {"client_id": label})
    assert series is not None
    assert series.client_id == client_id


REQUESTS = {
    "the usual rules": ("kafka_network_requestmetrics_errors_total", {}),
    "untyped": ("kafka_network_requestmetrics_errors", {}),
    "PerSec kept": ("kafka_network_requestmetrics_errorspersec_total", {}),
    "PerSec and Count kept": ("kafka_network_requestmetrics_errorspersec_count", {}),
    "a counter that is not called one": ("kafka_network_requestmetrics_errorspersec", {}),
    "case kept": ("kafka_network_RequestMetrics_ErrorsPerSec", {}),
    "no rules": ("kafka_network_RequestMetrics_Count", {"name": "ErrorsPerSec"}),
}


@pytest.mark.parametrize(("name", "more"), REQUESTS.values(), ids=REQUESTS)
def test_errors_of_requests_are_known_in_every_spelling(name: str, more: dict[str, str]) -> None:
    labels = {"request": "Produce", "error": "OUT_OF_ORDER_SEQUENCE_NUMBER", **more}
    series = series_of(name, labels)
    assert series is not None
    assert series.quantity is Quantity.REQUEST_ERRORS
    assert (series.request, series.error) == ("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER")


ELECTIONS = {
    "the usual rules": ("kafka_controller_controllerstats_uncleanleaderelections_total", {}),
    "Strimzi": ("kafka_controller_controllerstats_uncleanleaderelectionspersec_total", {}),
    "Count kept": ("kafka_controller_controllerstats_uncleanleaderelectionspersec_count", {}),
    "case kept": ("kafka_controller_ControllerStats_UncleanLeaderElectionsPerSec", {}),
    "no rules": (
        "kafka_controller_ControllerStats_Count",
        {"name": "UncleanLeaderElectionsPerSec"},
    ),
    "OpenTelemetry's JMX metrics": ("kafka_unclean_election_rate_total", {}),
    "the same, with its unit": ("kafka_unclean_election_rate_elections_total", {}),
    "the same, untyped": ("kafka_unclean_election_rate", {}),
    "the same in UTF-8": ("kafka.unclean.election.rate", {}),
    "OpenTelemetry's later name": ("kafka_leader_election_unclean_count_total", {}),
}


@pytest.mark.parametrize(("name", "more"), ELECTIONS.values(), ids=ELECTIONS)
def test_unclean_elections_are_known_in_every_spelling(name: str, more: dict[str, str]) -> None:
    series = series_of(name, more)
    assert series is not None
    assert series.quantity is Quantity.UNCLEAN_ELECTIONS


OTHERS: dict[str, tuple[str, dict[str, str]]] = {
    "another metric of producers": ("kafka_producer_record_send_total", OF_TOPIC),
    "a consumer's": ("kafka_consumer_record_error_total", OF_TOPIC),
    "Connect's": ("kafka_connect_task_error_metrics_total_record_errors", {}),
    "it begins alike": ("kafka_producer_record_error_total_bytes", OF_TOPIC),
    "it ends alike": ("my_kafka_producer_record_error_total", OF_TOPIC),
    "nobody is named": ("kafka_producer_record_error_total", {"topic": "orders"}),
    "an empty name": ("kafka_producer_record_error_total", {"client_id": ""}),
    "requests, no errors": ("kafka_network_requestmetrics_requests_total", {"request": "Produce"}),
    "another meter": (
        "kafka_network_RequestMetrics_Count",
        {"name": "RequestsPerSec", "request": "Produce", "error": "NONE"},
    ),
    "leader elections": ("kafka_leader_election_rate_total", {}),
    "OpenTelemetry's failed requests": ("kafka_request_failed_total", {"type": "produce"}),
    "Confluent Cloud's requests": ("confluent_kafka_server_request_count", {"type": "Produce"}),
    "errors of no request": ("kafka_network_requestmetrics_errors_total", {"error": "X"}),
    "another meter of the controller": (
        "kafka_controller_ControllerStats_Count",
        {"name": "ElectionFromEligibleLeaderReplicasPerSec"},
    ),
}


@pytest.mark.parametrize(("name", "labels"), OTHERS.values(), ids=OTHERS)
def test_what_only_observations_like_it_is_not_taken(name: str, labels: dict[str, str]) -> None:
    assert series_of(name, labels) is None


def test_a_server_tells_in_which_process_a_series_was() -> None:
    told = series_of("kafka_producer_record_error_total", {**CLIENT, "instance": "app-1:8081"})
    assert told is not None
    assert told.place == "app-1:8081"
    by_pod = series_of(
        "kafka_producer_record_error_total", {**CLIENT, "pod": "app-1", "job": "kafka"}
    )
    assert by_pod is not None
    assert by_pod.place == "app-1"


BROKERS: dict[str, tuple[dict[str, str], int | None, tuple[str, ...]]] = {
    "a page of its own": ({}, None, ()),
    "a label of the target": ({"broker_id": "2"}, 2, ()),
    "KRaft's word": ({"node_id": "3"}, 3, ()),
    "MSK by Prometheus": (
        {"job": "jmx", "instance": "b-2.prod.abc123.c4.kafka.eu-west-1.amazonaws.com:11001"},
        None,
        ("b-2.prod.abc123.c4.kafka.eu-west-1.amazonaws.com:11001",),
    ),
    "Strimzi's pod": (
        {"instance": "10.0.3.7:9404", "kubernetes_pod_name": "prod-kafka-2"},
        None,
        ("10.0.3.7:9404", "prod-kafka-2"),
    ),
    "a number": ({"broker": "1"}, 1, ("1",)),
    "a name": ({"broker": "kafka-1"}, None, ("kafka-1",)),
    "no int32": ({"broker_id": "9" * 12}, None, ()),
}


@pytest.mark.parametrize(("labels", "broker_id", "hosts"), BROKERS.values(), ids=BROKERS)
def test_the_broker_is_known_by_a_label_and_its_hosts(
    labels: dict[str, str], broker_id: int | None, hosts: tuple[str, ...]
) -> None:
    series = series_of(
        "kafka_network_requestmetrics_errors_total", {"request": "Produce", "error": "X", **labels}
    )
    assert series is not None
    assert (broker_id_of(series), hosts_of(series)) == (broker_id, hosts)


def test_labels_that_mean_nothing_to_us_tell_series_apart() -> None:
    name = "kafka_producer_record_error_total"
    assert series_of(name, {**CLIENT, "spring_id": "a"}) != series_of(
        name, {**CLIENT, "spring_id": "b"}
    )
    reordered = {"spring_id": "a", **CLIENT}
    assert series_of(name, {**CLIENT, "spring_id": "a"}) == series_of(name, reordered)


def test_a_server_is_asked_for_every_name_that_is_known() -> None:
    asked = re.compile(NAMES)
    names = [
        *TOTALS.values(),
        *(name for name, _ in (*REQUESTS.values(), *ELECTIONS.values())),
    ]
    for name in names:
        if "." not in name:  # such a name is found on pages only
            assert asked.fullmatch(name), name
    for name, labels in OTHERS.values():
        if "producer" in name and labels == OF_TOPIC:
            assert not asked.fullmatch(name), name


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, -0.001, 1e300, 10**400])
def test_a_value_that_counts_nothing_is_absurd(value: float) -> None:
    assert is_absurd(value)


@pytest.mark.parametrize("value", [0, 0.0, 0.162, 5.0, 2**53])
def test_counts_and_rates_are_not_absurd(value: float) -> None:
    assert not is_absurd(value)
