"""Series that come and go with each round: what they are made of, and what a limit leaves out of them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from rules.facts.column import Ragged
from rules.facts.scrapes import Scrapes
from rules.facts.snapshot import Snapshot
from service.metrics.baseline_bands import BaselineBands
from service.metrics.selection import NamePatterns, SeriesLimits
from service.metrics.totals import SelfMetrics
from tests.factories import offsets, partitions, snapshot
from tests.scraped import (
    client_reading,
    counted,
    endpoint_state,
    request_errors,
    scrapes,
    unclean_elections,
)
from tests.unit.service.metrics.reading import labelled, rendered

PER_ROW = 12
ERRORS, RETRIES = "tidemark_kafka_record_errors_total", "tidemark_kafka_record_retries_total"
REQUESTS = "tidemark_kafka_broker_request_errors_total"
ELECTIONS = "tidemark_kafka_unclean_elections_total"
REPLICAS = "tidemark_kafka_replica_log_end_offset"
OTHER = "http://prometheus:9090"


def observed(found: Scrapes) -> Snapshot:
    return snapshot(scrapes=found)


def errors_of(found: Scrapes, limits: SeriesLimits | None = None) -> dict[tuple[str, ...], float]:
    """Return the failed records by client, address and topic; the topic is empty where there is none."""
    page = rendered(observed(found), limits=limits)
    return labelled(page, ERRORS, "client", "address", "topic")


def test_a_client_is_shown_by_its_topics_and_not_by_their_sum_too() -> None:
    found = scrapes(
        client_reading(topic=None, errors=counted(total=5)),
        client_reading(errors=counted(total=3)),
        client_reading(topic="audit", errors=counted(total=2)),
    )
    payments = ("payments", "app-1:8081")
    assert errors_of(found) == {(*payments, "orders"): 3, (*payments, "audit"): 2}


def test_a_client_that_exposes_only_the_sum_is_shown_without_a_topic() -> None:
    page = rendered(observed(scrapes(client_reading(topic=None, retries=counted(total=7)))))
    [(name, labels)] = page[RETRIES.removesuffix("_total")].samples
    assert name == RETRIES
    assert dict(labels) == {"cluster": "default", "client": "payments", "address": "app-1:8081"}


def test_two_processes_with_one_client_id_are_two_series() -> None:
    found = scrapes(
        client_reading(errors=counted(total=1)),
        client_reading(address="app-2:8081", errors=counted(total=2)),
    )
    assert {labels[1]: value for labels, value in errors_of(found).items()} == {
        "app-1:8081": 1,
        "app-2:8081": 2,
    }


def test_a_process_that_two_endpoints_expose_is_one_series_with_its_latest_total() -> None:
    found = scrapes(
        client_reading(errors=counted(total=9)),
        client_reading(endpoint=OTHER, errors=counted(total=8)),
        endpoints=(endpoint_state(), endpoint_state(OTHER)),
    )
    assert list(errors_of(found).values()) == [9]


def test_what_is_unknown_gone_or_outdated_has_no_sample() -> None:
    found = scrapes(
        client_reading("rate-only", errors=counted(total=None)),
        client_reading("nothing", errors=None),
        client_reading("gone", is_gone=True),
        client_reading("outdated", endpoint=OTHER),
        endpoints=(endpoint_state(), endpoint_state(OTHER, is_fresh=False)),
        request_errors=(request_errors(is_gone=True), request_errors(endpoint=OTHER)),
        unclean_elections=(unclean_elections(is_gone=True), unclean_elections(endpoint=OTHER)),
    )
    page = rendered(observed(found))
    assert errors_of(found) == {}
    assert not {REQUESTS.removesuffix("_total"), ELECTIONS.removesuffix("_total")} & page.keys()


def test_brokers_and_controllers_are_named_by_their_addresses() -> None:
    found = scrapes(request_errors=(request_errors(),), unclean_elections=(unclean_elections(),))
    page = rendered(observed(found))
    assert labelled(page, REQUESTS, "broker", "request", "error") == {
        ("broker-1:7071", "Produce", "NOT_LEADER_OR_FOLLOWER"): 4
    }
    assert labelled(page, ELECTIONS, "controller") == {("controller-1:7071",): 1}


def shrunk() -> Snapshot:
    """Two topics; one partition of each has a follower that is behind."""
    return snapshot(
        partitions=partitions({"audit": 1, "orders": 2}, replicas=Ragged.of([(1, 2)] * 3)),
        offsets=offsets(3, replica_log_end_offsets=[9, 4, None, 50, 100, 70]),
        followed=np.array([True, False, True]),
    )


def test_replicas_are_shown_where_all_of_a_partition_were_queried() -> None:
    assert labelled(rendered(shrunk()), REPLICAS, "topic", "partition", "replica") == {
        ("audit", "0", "1"): 9,
        ("audit", "0", "2"): 4,
        ("orders", "1", "1"): 100,
        ("orders", "1", "2"): 70,
    }


def dropped(seen: Snapshot, limits: SeriesLimits) -> dict[tuple[str, ...], float]:
    found = labelled(rendered(seen, limits=limits), "tidemark_series_dropped", "reason")
    return {key: value for key, value in found.items() if value}


def test_a_denied_topic_has_neither_replicas_nor_clients() -> None:
    limits = SeriesLimits(topics=NamePatterns(deny=re.compile("orders")))
    found = scrapes(
        client_reading(), client_reading(topic="audit"), client_reading("b", topic=None)
    )
    assert {labels[2] for labels in errors_of(found, limits)} == {"audit", ""}
    denied = len(observed(found).partitions) * PER_ROW
    assert dropped(observed(found), limits) == {("topic_pattern",): denied + 2}
    assert dropped(shrunk(), limits) == {("topic_pattern",): 2 * PER_ROW + 2}


def test_what_partitions_leave_of_the_limit_is_for_replicas_then_brokers_then_clients() -> None:
    limits = SeriesLimits(max_series=3 * PER_ROW + 6)
    found = scrapes(
        client_reading("a"),
        client_reading("b"),
        request_errors=(request_errors(),),
    )
    seen = replace(shrunk(), scrapes=found)
    page = rendered(seen, limits=limits)
    assert len(labelled(page, REPLICAS, "replica", "topic")) == 4
    assert len(labelled(page, REQUESTS, "broker")) == 1
    assert labelled(page, ERRORS, "client") == {("a",): 0}
    assert RETRIES.removesuffix("_total") not in page
    assert dropped(seen, limits) == {("limit",): 3}


def test_bands_beyond_their_own_limit_are_counted_with_the_rest() -> None:
    totals = SelfMetrics(version="0.1.0", baseline=BaselineBands(left_out=2))
    found = rendered(snapshot(), totals=totals)
    assert labelled(found, "tidemark_series_dropped", "reason")[("limit",)] == 6


def test_replicas_of_partitions_that_do_not_fit_are_left_out_too() -> None:
    limits = SeriesLimits(max_series=PER_ROW + 1)
    page = rendered(shrunk(), limits=limits)
    assert labelled(page, REPLICAS, "topic", "replica") == {("audit", "1"): 9}
    assert dropped(shrunk(), limits) == {("limit",): 2 * PER_ROW + 3}
