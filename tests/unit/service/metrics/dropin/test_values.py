"""Values of drop-in pages are those that `tidemark collect -o json` and the API show of the same round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from rules.facts.column import Column
from rules.facts.gap import GapScope
from rules.facts.snapshot import Snapshot
from rules.time_lag import TimeLag, TimeLags
from service.cli.collect.snapshot_table import snapshot_document
from service.metrics.dropin import EXPORTERS, KAFKA_EXPORTER, KAFKA_LAG_EXPORTER, KMINION
from service.metrics.dropin.exporter import Exporter
from service.metrics.exposition import Exposition
from service.metrics.selection import SeriesLimits
from service.views.snapshot_rows import time_lag_rows
from tests.factories import (
    broker,
    commits,
    gap,
    group,
    offsets,
    partitions,
    quorum,
    report,
    snapshot,
)
from tests.unit.service.metrics.busy import LAGS, busy_snapshot
from tests.unit.service.metrics.dropin.reading import rendered
from tests.unit.service.metrics.dropin.whole import shared_snapshot, whole_snapshot
from tests.unit.service.metrics.reading import TOTALS, Labels, labelled, samples

Document = Mapping[str, Any]
Values = dict[tuple[str, ...], float]

KNOWN: Final = TimeLags(
    read_committed=LAGS.read_committed,
    read_uncommitted=TimeLag(
        lag_us=Column.of([12_500_000, 2_000_000, 0, 1]),
        within_us=np.zeros(4, np.int64),
        at_least_us=Column.absent(4),
        why_absent=np.full(4, -1, np.int8),
    ),
)
JOINS: Final[Mapping[str, Callable[[Iterable[float]], float]]] = {"max_lag": max, "sum_lag": sum}
SEEN: Final = {"whole": whole_snapshot(), "busy": busy_snapshot()}
rounds = pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)


def of_partitions(document: Document, value: Callable[[Document], float | None]) -> Values:
    rows = ((row["topic"], str(row["partition"]), value(row)) for row in document["partitions"])
    return {(topic, number): known for topic, number, known in rows if known is not None}


def of_commits(document: Document, field: str) -> Values:
    return {
        (entry["group"], row["topic"], str(row["partition"])): row[field]
        for entry in document["groups"]
        for row in entry["commits"]
        if row[field] is not None
    }


def joined(
    document: Document, field: str, join: Callable[[Iterable[float]], float], *, by_topic: bool
) -> Values:
    """Join what collect shows of each group, or group and topic; where one is null there is none."""
    parts: dict[tuple[str, ...], list[float | None]] = {}
    for entry in document["groups"]:
        for row in entry["commits"]:
            key = (entry["group"], row["topic"]) if by_topic else (entry["group"],)
            parts.setdefault(key, []).append(row[field])
    whole = {key: [part for part in own if part is not None] for key, own in parts.items()}
    return {key: join(own) for key, own in whole.items() if len(own) == len(parts[key])}


def of_topics(document: Document, field: str) -> Values:
    rows: dict[tuple[str, ...], list[Any]] = {}
    for row in document["partitions"]:
        rows.setdefault((row["topic"],), []).append(row[field])
    return {topic: sum(own) for topic, own in rows.items() if None not in own}


def value_of(field: str) -> Callable[[Document], float | None]:
    return lambda row: row[field]


def count_of(field: str) -> Callable[[Document], float | None]:
    return lambda row: None if row[field] is None else len(row[field])


def is_preferred(row: Document) -> float | None:
    return None if not row["replicas"] else float(row["leader"] == row["replicas"][0])


def is_short(row: Document) -> float | None:
    if row["isr"] is None or row["replicas"] is None:
        return None
    return float(len(row["isr"]) < len(row["replicas"]))


@rounds
def test_kafka_exporter_shows_what_collect_shows(seen: Snapshot) -> None:
    document, page = snapshot_document(seen), rendered(KAFKA_EXPORTER, seen)

    def partitions_of(name: str) -> Values:
        return labelled(page, f"kafka_topic_partition_{name}", "topic", "partition")

    for name, value in {
        "current_offset": value_of("high_watermark"),
        "oldest_offset": value_of("log_start_offset"),
        "leader": value_of("leader"),
        "replicas": count_of("replicas"),
        "in_sync_replica": count_of("isr"),
        "leader_is_preferred": is_preferred,
        "under_replicated_partition": is_short,
    }.items():
        assert partitions_of(name) == of_partitions(document, value), name
    commit = ("consumergroup", "topic", "partition")
    group_ = "kafka_consumergroup_"
    lag, offset = "read_uncommitted_lag", "committed_offset"
    assert labelled(page, f"{group_}current_offset", *commit) == of_commits(document, offset)
    assert labelled(page, f"{group_}lag", *commit) == of_commits(document, lag)
    for name, field in {"current_offset_sum": offset, "lag_sum": lag}.items():
        assert labelled(page, group_ + name, *commit[:2]) == joined(
            document, field, sum, by_topic=True
        )
    assert labelled(page, f"{group_}members", "consumergroup") == members_of(document)
    assert labelled(page, "kafka_brokers") == {(): len(document["brokers"])}
    assert labelled(page, "kafka_broker_info", "id", "address") == {
        (str(row["broker_id"]), f"{row['host']}:{row['port']}"): 1.0 for row in document["brokers"]
    }
    assert labelled(page, "kafka_topic_partitions", "topic") == {("audit",): 1, ("orders",): 3}


def members_of(document: Document) -> Values:
    entries = document["groups"]
    return {(row["group"],): row["members"] for row in entries if row["members"] is not None}


@rounds
def test_kminion_shows_what_collect_shows(seen: Snapshot) -> None:
    document, page = snapshot_document(seen), rendered(KMINION, seen)
    place = ("topic_name", "partition_id")
    for mark, field in {"high": "high_watermark", "low": "log_start_offset"}.items():
        topic = f"kminion_kafka_topic_{mark}_water_mark_sum"
        partition = f"kminion_kafka_topic_partition_{mark}_water_mark"
        assert labelled(page, topic, place[0]) == of_topics(document, field)
        expected = of_partitions(document, value_of(field))
        assert labelled(page, partition, *place) == expected
    lag, group_ = "read_uncommitted_lag", "kminion_kafka_consumer_group_"
    shown = labelled(page, f"{group_}topic_partition_lag", "group_id", *place)
    assert shown == of_commits(document, lag)
    for name, field in {"topic_lag": lag, "topic_offset_sum": "committed_offset"}.items():
        shown = labelled(page, group_ + name, "group_id", "topic_name")
        assert shown == joined(document, field, sum, by_topic=True), name
    assert labelled(page, f"{group_}members", "group_id") == members_of(document)
    info = ("group_id", "state", "coordinator_id")
    assert labelled(page, f"{group_}info", *info) == {
        (row["group"], row["state"], str(row["coordinator"])): float(row["state"] == "Stable")
        for row in document["groups"]
        if row["state"] is not None
    }
    cluster = ("broker_count", "controller_id", "cluster_id")
    count, controller = str(len(document["brokers"])), str(document["controller"])
    assert labelled(page, "kminion_kafka_cluster_info", *cluster) == {
        (count, controller, document["cluster_id"]): 1.0
    }
    address = ("broker_id", "address", "port", "is_controller")
    assert labelled(page, "kminion_kafka_broker_info", *address) == {
        (str(row["broker_id"]), row["host"], str(row["port"]), is_controller(document, row)): 1.0
        for row in document["brokers"]
    }
    topics = ("topic_name", "partition_count", "replication_factor")
    assert set(labelled(page, "kminion_kafka_topic_info", *topics)) == {
        ("audit", "1", "3"),
        ("orders", "3", "3"),
    }


def is_controller(document: Document, broker_row: Document) -> str:
    return str(document["controller"] == broker_row["broker_id"]).lower()


@rounds
def test_kafka_lag_exporter_shows_what_collect_shows(seen: Snapshot) -> None:
    document = snapshot_document(seen)
    page = rendered(KAFKA_LAG_EXPORTER, seen, lags=KNOWN)
    name, commit = "kafka_consumergroup_group_", ("group", "topic", "partition")
    place = commit[1:]
    for metric, field in {"latest": "high_watermark", "earliest": "log_start_offset"}.items():
        shown = labelled(page, f"kafka_partition_{metric}_offset", *place)
        assert shown == of_partitions(document, value_of(field))
    lag = "read_uncommitted_lag"
    assert labelled(page, f"{name}offset", *commit) == of_commits(document, "committed_offset")
    assert labelled(page, f"{name}lag", *commit) == of_commits(document, lag)
    for metric, join in JOINS.items():
        shown = labelled(page, name + metric, "group")
        assert shown == joined(document, lag, join, by_topic=False), metric
    shown = labelled(page, f"{name}topic_sum_lag", "group", "topic")
    assert shown == joined(document, lag, sum, by_topic=True)
    clusters = {dict(labels)["cluster_name"] for _, labels in samples(page)}
    assert clusters == {document["cluster"]}
    took = labelled(page, "kafka_consumergroup_poll_time_ms")
    assert took == {(): 1000 * document["took_seconds"]}


def test_time_lags_are_those_of_the_api() -> None:
    seen = whole_snapshot()
    page = rendered(KAFKA_LAG_EXPORTER, seen, lags=KNOWN)
    rows = time_lag_rows(KNOWN, np.arange(4))
    name = "kafka_consumergroup_group_lag_seconds"
    shown = list(labelled(page, name, "group", "topic", "partition").values())
    assert shown == [row["read_uncommitted_lag_seconds"] for row in rows]
    largest = labelled(page, "kafka_consumergroup_group_max_lag_seconds", "group")
    assert largest == {("billing",): 12.5, ("search",): 1e-06}


def test_an_unknown_time_lag_leaves_no_maximum() -> None:
    page = rendered(KAFKA_LAG_EXPORTER, whole_snapshot(), lags=LAGS)
    assert labelled(page, "kafka_consumergroup_group_max_lag_seconds", "group") == {
        ("search",): 1e-06
    }
    assert "kafka_consumergroup_group_lag_seconds" not in rendered(
        KAFKA_LAG_EXPORTER, whole_snapshot()
    )


@pytest.mark.parametrize("exporter", EXPORTERS, ids=lambda exporter: exporter.name)
@rounds
def test_no_value_is_negative(seen: Snapshot, exporter: Exporter) -> None:
    assert min(samples(rendered(exporter, seen, lags=LAGS)).values()) >= 0


SUMS: Final = {
    KAFKA_EXPORTER: ("kafka_consumergroup_lag_sum", "consumergroup"),
    KMINION: ("kminion_kafka_consumer_group_topic_lag", "group_id"),
    KAFKA_LAG_EXPORTER: ("kafka_consumergroup_group_sum_lag", "group"),
}
each_sum = pytest.mark.parametrize("exporter", SUMS, ids=[exporter.name for exporter in SUMS])


def groups_with_sums(exporter: Exporter, seen: Snapshot) -> set[str]:
    name, label = SUMS[exporter]
    return {group_id for (group_id,) in labelled(rendered(exporter, seen), name, label)}


@each_sum
def test_a_group_whose_commits_are_missing_has_no_sum(exporter: Exporter) -> None:
    seen = whole_snapshot()
    assert groups_with_sums(exporter, seen) == {"billing", "search"}
    missing = gap(scope=GapScope.COMMITS, group="billing")
    assert groups_with_sums(exporter, replace(seen, gaps=(missing,))) == {"search"}
    somebody_s = gap(scope=GapScope.COMMITS, group=None)
    assert groups_with_sums(exporter, replace(seen, gaps=(somebody_s,))) == set()


def test_a_group_whose_topics_may_be_missing_has_sums_of_the_others_alone() -> None:
    seen = replace(whole_snapshot(), placement_complete=False)
    page = rendered(KAFKA_LAG_EXPORTER, seen)
    assert "kafka_consumergroup_group_sum_lag" not in page
    assert "kafka_consumergroup_group_max_lag" not in page
    assert len(page["kafka_consumergroup_group_topic_sum_lag"].samples) == 4


@each_sum
def test_a_share_group_is_left_out(exporter: Exporter) -> None:
    page = samples(rendered(exporter, shared_snapshot(), lags=KNOWN))
    named = {value for _, labels in page for _, value in labels}
    assert "billing" not in named
    assert "search" in named
    assert groups_with_sums(exporter, shared_snapshot()) == {"search"}


def test_a_controller_that_is_not_known_has_no_label() -> None:
    page = rendered(KMINION, snapshot(quorum=quorum(None), brokers=(broker(1),)))
    assert keys(page["kminion_kafka_cluster_info"].samples) == {"broker_count", "cluster_id"}
    assert "is_controller" not in keys(page["kminion_kafka_broker_info"].samples)
    assert "rack_id" not in keys(page["kminion_kafka_broker_info"].samples)


def keys(found: Iterable[tuple[str, Labels]]) -> set[str]:
    return {name for _, labels in found for name, _ in labels}


def test_a_controller_that_is_no_broker_makes_none_the_controller() -> None:
    page = rendered(KMINION, snapshot(quorum=quorum(100)))
    flags = labelled(page, "kminion_kafka_broker_info", "broker_id", "is_controller")
    assert set(flags) == {("1", "false"), ("2", "false"), ("3", "false")}


def test_kminion_is_up_while_what_it_would_query_is_whole() -> None:
    up = "kminion_exporter_up"
    assert labelled(rendered(KMINION, snapshot()), up) == {(): 1.0}
    others = (gap(scope=GapScope.PRODUCERS), gap(scope=GapScope.BROKER_LOG))
    assert labelled(rendered(KMINION, snapshot(gaps=others)), up) == {(): 1.0}
    lost = (gap(scope=GapScope.OFFSETS),)
    assert labelled(rendered(KMINION, snapshot(gaps=lost)), up) == {(): 0.0}


def test_an_ipv6_address_is_in_brackets() -> None:
    page = rendered(KAFKA_EXPORTER, snapshot(brokers=(broker(1, host="fd00::1", port=9092),)))
    assert labelled(page, "kafka_broker_info", "address") == {("[fd00::1]:9092",): 1.0}


def test_limits_of_the_metrics_page_hold_and_sums_are_of_whole_topics() -> None:
    seen = whole_snapshot()
    page = rendered(KMINION, seen, limits=SeriesLimits(max_series=24))
    shown = labelled(page, "kminion_kafka_topic_partition_low_water_mark", "topic_name")
    assert shown == {("audit",): 0.0, ("orders",): 5.0}, "as many partitions as fit"
    sums = labelled(page, "kminion_kafka_topic_low_water_mark_sum", "topic_name")
    assert sums == {("audit",): 0.0, ("orders",): 21.0}
    assert "kminion_kafka_consumer_group_members" not in page


def test_sums_beyond_what_a_float_counts_are_exact() -> None:
    seen = snapshot(
        partitions=partitions({"orders": 2}),
        offsets=offsets(2, high_watermark=[2**53, 1], last_stable_offset=[2**53, 1]),
        groups=(group(),),
        commits=commits((0, 0, 0), (0, 1, 0)),
        report=report(),
    )
    page = text_of(KAFKA_EXPORTER, seen)
    assert (
        f'kafka_consumergroup_lag_sum{{consumergroup="billing",topic="orders"}} {2**53 + 1}\n'
        in (page)
    )


def text_of(exporter: Exporter, seen: Snapshot) -> str:
    exposition = Exposition()
    exposition.update(seen, TOTALS)
    return exposition.body(None, gzip=False, exporter=exporter)[0].decode()
