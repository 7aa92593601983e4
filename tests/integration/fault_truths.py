"""What the faults of transactions leave, and settings of the cluster."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka.admin import (  # type: ignore[attr-defined] # re-exports without saying so
    AdminClient,
    ConfigEntry,
    ConfigResource,
)

from service.sandbox.cluster.cluster import Sandbox

SOON = 180.0
BEFORE, RECORDS = 5, 3  # committed ones, and those of the transaction
HELD = (BEFORE, BEFORE + RECORDS, BEFORE + RECORDS)
RELEASED = (BEFORE + RECORDS + 1,) * 3  # the marker takes an offset
TRANSACTIONS = "kafka-transactions.sh"

Named = Callable[[str], str]


def setting(cluster: Sandbox, of: ConfigResource, key: str) -> ConfigEntry:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    entry: ConfigEntry = client.describe_configs([of])[of].result(timeout=SOON)[key]
    return entry
