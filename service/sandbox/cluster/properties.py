"""Kafka's configuration of each node, as plain mappings; nothing here touches the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from service.sandbox.cluster.ports import HOST
from service.sandbox.cluster.state import Node, Role, SandboxState
from service.sandbox.cluster.tls import KEYSTORE_PASSWORD, keystore
from service.sandbox.cluster.users import ADMIN, MECHANISMS

SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"

# Faults show within seconds. Each pair keeps Kafka's own constraints (heartbeat < session).
FAST = {
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "4000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "producer.id.expiration.check.interval.ms": "1000",
    "replica.lag.time.max.ms": "3000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}

# What a cluster needs on which exactly-once can hold.
DURABLE = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.replication.factor": "3",
}

# Four processes share a laptop: Kafka would reserve 128 MB per broker for log compaction alone, and
# write an empty record of metadata twice a second, which each broker fetches. The coordinators' topics
# are small, so that a fresh cluster creates them at once.
FRUGAL = {
    "background.threads": "2",
    "group.coordinator.threads": "1",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.cleaner.io.buffer.size": "131072",
    "metadata.max.idle.interval.ms": "5000",
    "num.io.threads": "4",
    "num.network.threads": "2",
    "offsets.topic.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
    "share.coordinator.threads": "1",
    "transaction.state.log.num.partitions": "5",
}

# Missing permissions are to be tried on the SASL listener; the plain one may do everything.
SECURITY = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{ADMIN.name}",
}


def node_properties(state: SandboxState, node: Node, *, data: Path) -> dict[str, str]:
    """Return the configuration of one node, whose log.dirs is `data`."""
    clocks = {} if state.options.realistic else FAST
    own = _controller(node) if node.role is Role.CONTROLLER else _broker(node, Path(state.cache))
    return {**clocks, **DURABLE, **FRUGAL, **SECURITY, **_common(state, node, data), **own}


def meta_properties(cluster_id: str, node_id: int) -> dict[str, str]:
    """Return the identity of a broker's storage: all that formatting would give a broker."""
    return {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id)}


def render(properties: Mapping[str, str]) -> str:
    """Write Java's properties format: backslashes and everything beyond ASCII are escaped."""
    return "".join(f"{key}={_escaped(properties[key])}\n" for key in sorted(properties))


def _escaped(value: str) -> str:
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2)]
    return "".join(chr(code) if code < 127 else f"\\u{code:04x}" for code in codes)


def _common(state: SandboxState, node: Node, data: Path) -> dict[str, str]:
    controller = next(n for n in state.nodes if n.role is Role.CONTROLLER)
    return {
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{controller.id}@{controller.address}",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL"
        ),
        "log.dirs": str(data),
        "node.id": str(node.id),
    }


def _controller(node: Node) -> dict[str, str]:
    return {"process.roles": "controller", "listeners": f"CONTROLLER://{node.address}"}


def _broker(node: Node, cache: Path) -> dict[str, str]:
    listeners = (
        f"PLAINTEXT://{node.address},SASL://{HOST}:{node.sasl_port},TLS://{HOST}:{node.tls_port}"
    )
    return {
        "process.roles": "broker",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.tls.ssl.keystore.location": str(keystore(cache)),
        "listener.name.tls.ssl.keystore.password": KEYSTORE_PASSWORD,
        "listener.name.tls.ssl.keystore.type": "PKCS12",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{f"listener.name.sasl.{m.lower()}.sasl.jaas.config": SCRAM_LOGIN for m in MECHANISMS},
    }
