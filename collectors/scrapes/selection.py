"""Selects the series of a page that Tidemark reads, in every spelling of the exporters.

The JMX exporter writes names as its rules say, and without rules `kafka_producer_producer_metrics_...`
for MBeans of Kafka's clients and `..._Count{name="ErrorsPerSec"}` for those of brokers, as MSK's open
monitoring does; its agent 1.0.1 leaves `_total` out. Micrometer and OpenTelemetry name the same after the
client's own groups. OpenTelemetry's JMX metrics of brokers have unclean elections, and failed requests
without their errors; Confluent Cloud exports requests by type and principal, and no errors either.
Labels come as client_id, clientId, client-id and client.id.
Source: the exporter's examples, Strimzi's rules, Micrometer's KafkaMetrics, OpenTelemetry's JMX rules,
Confluent Cloud's Metrics API, KIP-714, and real pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

_CLIENTS: Final = (
    r"(?:org_apache_)?kafka_producer_(?:producer_)?(?:topic_)?(?:metrics_)?"
    r"record_(?P<what>error|retry)(?:_total|(?P<rate>_rate))?"
)
_REQUESTS: Final = r"kafka_network_requestmetrics_(?:errors(?:persec)?(?:_total|_count)?|count)"
_ELECTIONS: Final = (
    r"(?:kafka_controller_controllerstats_"
    r"(?:uncleanleaderelections(?:persec)?(?:_total|_count)?|count)"
    # OpenTelemetry's, a counter in spite of its name.
    r"|kafka_(?:unclean_election_rate|leader_election_unclean_count)(?:_elections)?(?:_total)?)"
)
# Counters of requests that do not say with which error a request failed.
_WITHOUT_ERRORS: Final = (
    r"kafka_request_failed(?:_requests)?(?:_total)?|confluent_kafka_server_request_count"
)
_CLIENT: Final = re.compile(_CLIENTS)
_REQUEST: Final = re.compile(_REQUESTS)
_ELECTION: Final = re.compile(_ELECTIONS)
_WITHOUT_ERROR: Final = re.compile(_WITHOUT_ERRORS)
# Without a rule of its own, a meter's name is a label beside many others' of the same name.
_METERS: Final = {
    "kafka_network_requestmetrics_count": "errorspersec",
    "kafka_controller_controllerstats_count": "uncleanleaderelectionspersec",
}
NAMES: Final = f"(?i:{_CLIENTS}|{_REQUESTS}|{_ELECTIONS})"  # as RE2 reads it too
# How a line begins that may hold one of them, also as `{"kafka.producer...",client_id="a"} 1`.
LINE_BEGINNING: Final = (
    rb"(?:org_apache_)?kafka_producer_[a-z_]*record_(?:error|retry)"
    rb"|kafka_network_requestmetrics_(?:error|count)"
    rb"|kafka_controller_controllerstats_(?:unclean|count)"
    rb"|kafka_(?:unclean_election|leader_election_unclean|request_failed)"
    rb"|confluent_kafka_server_request_count"
    rb'|\{[^\n]*"[^"\n]*(?:record.(?:error|retry)|requestmetrics|controllerstats|request.failed|unclean)'
)
_ESCAPED: Final = re.compile(r"\\(.)")  # as javax.management.ObjectName.quote does
_WORDS: Final = re.compile(r"[^a-z0-9]+")
# Where the process runs, by the labels that a Prometheus server adds; the first one counts.
_PLACES: Final = ("instance", "pod", "kubernetes_pod_name")
# Where a broker's id may be, and by what it may be called besides: keys without other letters than these.
_BROKER_IDS: Final = ("brokerid", "nodeid", "kafkabrokerid", "kafkanodeid", "broker")
_HOSTS: Final = ("instance", "pod", "kubernetespodname", "hostname", "host", "nodename", "broker")
NO_ERROR: Final = "NONE"  # answers without an error are counted under this name
LARGEST: Final = 2.0**53  # above it a float is no count any more
ID_DIGITS: Final = 11  # a broker's id is an int32


class Quantity(StrEnum):
    """What a series counts."""

    RECORD_ERRORS = "record_errors"
    RECORD_RETRIES = "record_retries"
    REQUEST_ERRORS = "request_errors"
    UNCLEAN_ELECTIONS = "unclean_elections"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One selected series: what it counts, of which process and client, and its own labels."""

    quantity: Quantity
    is_rate: bool = False  # per second, as the client itself measures it; else a total
    place: str | None = None  # where the process runs, as a Prometheus server says
    client_id: str | None = None
    topic: str | None = None
    request: str | None = None
    error: str | None = None
    rest: tuple[tuple[str, str], ...] = ()  # name and all labels, as they came


def series_of(name: str, labels: Mapping[str, str]) -> Series | None:
    """Return the series of a sample, None if it is not selected."""
    plain, by_key = _plain(name), _by_key(labels)
    series = _of_client(plain, by_key) or _of_broker(plain, by_key)
    if series is None:
        return None
    place = next((labels[label] for label in _PLACES if labels.get(label)), None)
    return replace(series, place=place, rest=(("__name__", name), *sorted(labels.items())))


def counts_without_error(name: str) -> bool:
    """Whether a metric counts requests of brokers and does not say with which error they failed."""
    return _WITHOUT_ERROR.fullmatch(_plain(name)) is not None


def broker_id_of(series: Series) -> int | None:
    """Return the id of the broker that a series is of, as its labels have it; None where they do not."""
    labels = _by_key(dict(series.rest))
    ids = (labels[key] for key in _BROKER_IDS if labels.get(key, "").isdecimal())
    return next((int(text) for text in ids if len(text) < ID_DIGITS), None)


def hosts_of(series: Series) -> tuple[str, ...]:
    """Return what a series' labels call the process or its machine, each once, in order."""
    labels = _by_key(dict(series.rest))
    return tuple(dict.fromkeys(labels[key] for key in _HOSTS if labels.get(key)))


def _plain(name: str) -> str:
    return name.lower().replace(".", "_").replace("-", "_")


def _by_key(labels: Mapping[str, str]) -> dict[str, str]:
    return {_WORDS.sub("", key.lower()): value for key, value in labels.items()}


def _of_client(plain: str, labels: Mapping[str, str]) -> Series | None:
    match = _CLIENT.fullmatch(plain)
    client_id = _unquote(labels.get("clientid") or labels.get("client") or "")
    if match is None or not client_id:
        return None
    is_error = match["what"] == "error"
    return Series(
        quantity=Quantity.RECORD_ERRORS if is_error else Quantity.RECORD_RETRIES,
        is_rate=match["rate"] is not None,
        client_id=client_id,
        topic=labels.get("topic") or None,
    )


def _unquote(client_id: str) -> str:
    """Return a client's own name: Java puts one with letters that JMX does not allow in quotes."""
    if len(client_id) < 2 or not (client_id.startswith('"') and client_id.endswith('"')):
        return client_id
    return _ESCAPED.sub(lambda match: "\n" if match[1] == "n" else match[1], client_id[1:-1])


def _of_broker(plain: str, labels: Mapping[str, str]) -> Series | None:
    meter = _METERS.get(plain)
    if meter is not None and labels.get("name", "").lower() != meter:
        return None
    if _ELECTION.fullmatch(plain):
        return Series(quantity=Quantity.UNCLEAN_ELECTIONS)
    request, error = labels.get("request"), labels.get("error")
    if not _REQUEST.fullmatch(plain) or not request or not error:
        return None
    return Series(quantity=Quantity.REQUEST_ERRORS, request=request, error=error)


def is_absurd(value: float) -> bool:
    """Whether a value is no count and no rate: not a number, negative, or beyond any count."""
    return not 0 <= value <= LARGEST
