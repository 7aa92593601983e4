"""A broker that is older than a request needs costs what that request gives, and nothing more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from collectors.wire.api import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    DESCRIBE_TOPIC_PARTITIONS,
    LIST_GROUPS,
    LIST_OFFSETS,
    OFFSET_FETCH,
)
from rules.errors import UnreachableError
from rules.facts.brokers import ControllerState
from rules.facts.gap import GapCause
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.clients import commit_offset, produce
from tests.integration.conftest import MakeReader
from tests.integration.observing import commit, group, only, partition, why_of
from tests.integration.old_brokers import MISSING, old_brokers

pytestmark = pytest.mark.integration


@pytest.fixture
def topic(cluster: Sandbox, admin: SandboxAdmin, new_name: Callable[[str], str]) -> str:
    """Make a topic with five records, of which the group of the same name has read two."""
    name = new_name("old")
    admin.create_topic(name)
    produce(cluster.bootstrap_servers, name, 5)
    commit_offset(cluster.bootstrap_servers, name, name, 2)
    return name


def test_proxies_change_nothing_by_themselves(
    cluster: Sandbox, make_reader: MakeReader, topic: str
) -> None:
    with old_brokers(cluster, {}) as bootstrap:
        snapshot = make_reader(bootstrap_servers=bootstrap).read(only(topic, groups=topic))
    assert snapshot.gaps == (), why_of(snapshot)
    assert {broker.port for broker in snapshot.brokers}.isdisjoint(
        broker.port for broker in cluster.state.brokers
    )
    assert commit(snapshot, topic, topic)["read_committed_lag"] == 3


def test_without_describe_topic_partitions_there_is_no_elr_and_nothing_is_missing(
    cluster: Sandbox, make_reader: MakeReader, topic: str
) -> None:
    with old_brokers(cluster, {DESCRIBE_TOPIC_PARTITIONS.key: MISSING}) as bootstrap:
        snapshot = make_reader(bootstrap_servers=bootstrap).read(only(topic, groups=topic))
    row = partition(snapshot, topic)
    assert (row["elr"], row["last_known_elr"]) == (None, None)
    assert (row["high_watermark"], row["log_end_offset"], len(row["isr"])) == (5, 5, 3)
    assert row["topic_id"] is not None
    assert snapshot.gaps == (), why_of(snapshot)


def test_without_describe_quorum_the_controller_is_not_known_and_nothing_is_missing(
    cluster: Sandbox, make_reader: MakeReader, topic: str
) -> None:
    with old_brokers(cluster, {DESCRIBE_QUORUM.key: MISSING}) as bootstrap:
        snapshot = make_reader(bootstrap_servers=bootstrap).read(only(topic))
    assert snapshot.quorum.state is ControllerState.NOT_KNOWN
    assert snapshot.gaps == (), why_of(snapshot)


def test_without_offset_fetch_for_many_groups_only_commits_are_missing(
    cluster: Sandbox, make_reader: MakeReader, topic: str
) -> None:
    with old_brokers(cluster, {OFFSET_FETCH.key: 7}) as bootstrap:
        snapshot = make_reader(bootstrap_servers=bootstrap).read(only(topic, groups=topic))
    assert partition(snapshot, topic)["high_watermark"] == 5
    assert group(snapshot, topic)["state"] == "Empty"
    assert group(snapshot, topic)["commits"] == []
    [gap] = snapshot.gaps
    assert gap.cause is GapCause.UNSUPPORTED
    assert "OffsetFetch: it needs Kafka 3.0" in gap.why


def test_old_list_groups_names_no_type_and_all_are_classic(
    cluster: Sandbox, make_reader: MakeReader, topic: str
) -> None:
    with old_brokers(cluster, {LIST_GROUPS.key: 4}) as bootstrap:
        snapshot = make_reader(bootstrap_servers=bootstrap).read(only(topic, groups=topic))
    assert (group(snapshot, topic)["type"], group(snapshot, topic)["state"]) == ("classic", "Empty")
    assert snapshot.gaps == (), why_of(snapshot)


def test_list_offsets_without_the_newest_version_reads_the_same(
    cluster: Sandbox, make_reader: MakeReader, topic: str
) -> None:
    with old_brokers(cluster, {LIST_OFFSETS.key: 6}) as bootstrap:
        snapshot = make_reader(bootstrap_servers=bootstrap).read(only(topic))
    assert partition(snapshot, topic)["log_end_offset"] == 5
    assert snapshot.gaps == (), why_of(snapshot)


def test_too_old_list_offsets_is_a_gap_per_broker_and_commits_stay(
    cluster: Sandbox, make_reader: MakeReader, topic: str
) -> None:
    with old_brokers(cluster, {LIST_OFFSETS.key: 5}) as bootstrap:
        snapshot = make_reader(bootstrap_servers=bootstrap).read(only(topic, groups=topic))
    row = partition(snapshot, topic)
    assert (row["log_start_offset"], row["last_stable_offset"]) == (None, None)
    assert (row["high_watermark"], row["log_end_offset"]) == (None, None)
    assert commit(snapshot, topic, topic)["committed_offset"] == 2
    assert commit(snapshot, topic, topic)["read_committed_lag"] is None
    assert "ListOffsets: it needs Kafka 2.8" in why_of(snapshot)


def test_cluster_that_cannot_describe_itself_is_rejected_with_the_release_it_needs(
    cluster: Sandbox, make_reader: MakeReader
) -> None:
    with (
        old_brokers(cluster, {DESCRIBE_CLUSTER.key: MISSING}) as bootstrap,
        pytest.raises(UnreachableError, match=r"DescribeCluster: it needs Kafka 2\.8"),
    ):
        make_reader(bootstrap_servers=bootstrap).read(only("any"))
