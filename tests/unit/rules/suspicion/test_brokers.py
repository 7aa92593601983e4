"""Which broker a page of metrics is of."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rules.suspicion.brokers import brokers_of
from tests.factories import broker
from tests.scraped import request_errors, scrapes

CASES: Final[
    dict[str, tuple[str, dict[str, Any], dict[str, int], tuple[str, str], tuple[int, ...]]]
] = {
    "its host": ("kafka-1:7071", {}, {}, ("kafka-1", "kafka-2"), (1,)),
    "in another case": ("KAFKA-2:7071", {}, {}, ("kafka-1", "kafka-2"), (2,)),
    "MSK": (
        "b-2.prod.c4.kafka.eu-west-1.amazonaws.com:11001",
        {},
        {},
        ("b-1.prod.c4.kafka.eu-west-1.amazonaws.com", "b-2.prod.c4.kafka.eu-west-1.amazonaws.com"),
        (2,),
    ),
    "Strimzi's pod": (
        "10.0.3.7:9404",
        {"hosts": ("10.0.3.7:9404", "prod-kafka-1")},
        {},
        ("prod-kafka-0.prod-kafka-brokers.ns.svc", "prod-kafka-1.prod-kafka-brokers.ns.svc"),
        (2,),
    ),
    "a label": ("10.0.3.7:9404", {"broker_id": 2}, {}, ("kafka-1", "kafka-2"), (2,)),
    "a label that is no broker": (
        "10.0.3.7:9404",
        {"broker_id": 9},
        {},
        ("kafka-1", "kafka-2"),
        (),
    ),
    "configured": ("10.0.3.7:9404", {}, {"10.0.3.7:9404": 1}, ("kafka-1", "kafka-2"), (1,)),
    "configured before a label": (
        "10.0.3.7:9404",
        {"broker_id": 2},
        {"10.0.3.7:9404": 1},
        ("kafka-1", "kafka-2"),
        (1,),
    ),
    "several on one machine": ("127.0.0.1:7071", {}, {}, ("127.0.0.1", "127.0.0.1"), (1, 2)),
    "an address of IPv6": ("[2001:db8::1]:7071", {}, {}, ("2001:db8::1", "2001:db8::2"), (1,)),
    "addresses that begin alike": ("10.0.3.7:9404", {}, {}, ("10.0.3.8", "10.0.3.9"), ()),
    "no broker's": ("exporter:9404", {}, {}, ("kafka-1", "kafka-2"), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    address, labels, configured, hosts, expected = CASES[name]
    reading = request_errors(address=address, **labels)
    brokers = [broker(number, host=host) for number, host in enumerate(hosts, start=1)]
    assert brokers_of(reading, scrapes(broker_ids=configured), brokers) == expected
