"""The newest Kafka release that the sandbox runs: what only it answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collectors.wire.api import DESCRIBE_SHARE_GROUP_OFFSETS
from service.app import cluster_reader
from service.runtime.clock import wait_until
from service.sandbox.cluster import tools
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox, SandboxOptions
from service.sandbox.cluster.releases import supported
from service.settings import KafkaSettings
from service.views.snapshot_rows import group_rows
from tests.integration.clients import produce
from tests.integration.java_groups import ShareConsumer
from tests.integration.observing import only
from tests.integration.old_brokers import old_brokers

pytestmark = [pytest.mark.integration, pytest.mark.brokers]

GROUP, TOPIC = "orders-workers", "orders"


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    options = SandboxOptions(kafka_version=supported()[-1])
    made = Sandbox(tmp_path_factory.mktemp("newest") / "kafka", options=options)
    made.up()
    yield made
    made.down()


def observe(servers: str) -> tuple[object, ...]:
    """Return start offset and both lags of the group; nothing as long as it has none."""
    reader = cluster_reader(KafkaSettings.model_validate({"bootstrap_servers": servers}))
    try:
        rows = [row for row in group_rows(reader.read(only(TOPIC))) if row["group"] == GROUP]
    finally:
        reader.close()
    names = ("committed_offset", "read_committed_lag", "read_uncommitted_lag")
    return tuple(found[name] for row in rows for found in row["commits"] for name in names)


def described(sandbox: Sandbox) -> tuple[int, int]:
    """Return start offset and lag, as Kafka's own tool prints them."""
    words = ["--describe", "--offsets", "--group", GROUP]
    printed = tools.run_quietly(sandbox, "kafka-share-groups.sh", words)
    [row] = [line.split() for line in printed.splitlines() if line.startswith(GROUP)]
    return int(row[-2]), int(row[-1])


def test_the_lag_of_a_share_group_is_that_of_kafka(newest: Sandbox) -> None:
    servers = newest.bootstrap_servers
    SandboxAdmin(servers).create_topic(TOPIC, partitions=1)
    produce(servers, TOPIC, 8)
    with ShareConsumer(newest, topic=TOPIC, group=GROUP) as share:
        assert wait_until(lambda: share.counts.consumed == 8, timeout_seconds=180)
        assert wait_until(lambda: observe(servers)[1:] == (0, 0), timeout_seconds=180)
    start, lag = described(newest)
    assert start < 8  # what is acknowledged beyond it is what the lag does not count
    assert observe(servers) == (start, lag, lag) == (start, 0, 0)
    produce(servers, TOPIC, 3)
    assert described(newest) == (start, 3)
    assert observe(servers) == (start, 3, 3)
    with old_brokers(newest, {DESCRIBE_SHARE_GROUP_OFFSETS.key: 0}) as older:
        assert observe(older) == (start, 11 - start, 11 - start)
