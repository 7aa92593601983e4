"""What the sandbox remembers between two commands: one JSON file, replaced atomically."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from rules.errors import SandboxError
from service.sandbox.cluster.layout import STATE_FILE
from service.sandbox.cluster.ports import HOST
from service.sandbox.cluster.releases import DEFAULT_VERSION, Release, find_release

CONTROLLER_ID = 100
BROKER_IDS = (1, 2, 3)
PORTS_NEEDED = 4 * len(BROKER_IDS) + 2


class Role(StrEnum):
    """A node is a controller or a broker, never both."""

    CONTROLLER = "controller"
    BROKER = "broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """A process for certain: its pid alone may have been reused since."""

    pid: int
    started: float  # seconds since 1970, as the system reports for that pid


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One member of the cluster. A controller has one listener, without password or TLS."""

    id: int
    role: Role
    port: int
    sasl_port: int | None
    tls_port: int | None
    metrics_port: int
    process: ProcessId | None = None

    @property
    def label(self) -> str:
        """How a message calls this node."""
        return f"{self.role} {self.id}"

    @property
    def address(self) -> str:
        """host:port of the PLAINTEXT listener."""
        return f"{HOST}:{self.port}"

    @property
    def ports(self) -> tuple[int, ...]:
        """Every port that this node listens on."""
        ports = (self.port, self.sasl_port, self.tls_port, self.metrics_port)
        return tuple(port for port in ports if port is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """How a sandbox is made; fixed from the first `up` to `down`."""

    heap: str = "256m"  # per process; the bar is 1.5 GiB for all four
    realistic: bool = False  # Kafka's own time-outs instead of fast ones
    port_base: int | None = None  # None: free ports
    kafka_version: str = DEFAULT_VERSION  # what those have that were made before there was a choice

    def __post_init__(self) -> None:
        """Reject a heap size that Java would not accept, and an unsupported release."""
        find_release(self.kafka_version)
        if not re.fullmatch(r"[1-9]\d*[kKmMgG]", self.heap):
            raise SandboxError(f"--heap {self.heap!r} is no size: write 256m or 1g")


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxState:
    """The whole memory of a sandbox."""

    cluster_id: str
    java: str
    cache: str
    options: SandboxOptions
    nodes: tuple[Node, ...]
    was_ready: bool = False  # false: the first `up` never came to its end

    @property
    def release(self) -> Release:
        """The Kafka that its nodes run."""
        return Release(self.options.kafka_version)

    def node(self, node_id: int) -> Node:
        """Return one node; raise with the ids that exist."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        ids = ", ".join(str(i) for i in BROKER_IDS)
        raise SandboxError(
            f"there is no node {node_id}: brokers are {ids}, the controller is {CONTROLLER_ID}"
        )

    @property
    def brokers(self) -> tuple[Node, ...]:
        """The brokers in order of their ids."""
        return tuple(node for node in self.nodes if node.role is Role.BROKER)

    @property
    def bootstrap_servers(self) -> str:
        """PLAINTEXT addresses of all brokers."""
        return ",".join(broker.address for broker in self.brokers)

    def with_process(self, node_id: int, process: ProcessId | None) -> SandboxState:
        """Return the state after a node's process began or was given up."""
        nodes = tuple(replace(n, process=process) if n.id == node_id else n for n in self.nodes)
        return replace(self, nodes=nodes)


def plan_nodes(ports: list[int]) -> tuple[Node, ...]:
    """Give out ports in this order: brokers, their SASL and TLS listeners, metrics, controller."""
    count = len(BROKER_IDS)
    brokers = tuple(
        Node(
            id=broker_id,
            role=Role.BROKER,
            port=ports[index],
            sasl_port=ports[count + index],
            tls_port=ports[2 * count + index],
            metrics_port=ports[3 * count + index],
        )
        for index, broker_id in enumerate(BROKER_IDS)
    )
    controller = Node(
        id=CONTROLLER_ID,
        role=Role.CONTROLLER,
        port=ports[4 * count],
        sasl_port=None,
        tls_port=None,
        metrics_port=ports[4 * count + 1],
    )
    return (controller, *brokers)


def read_state(directory: Path) -> SandboxState | None:
    """Return the remembered state, or None when there is no sandbox here."""
    path = directory / STATE_FILE
    try:
        return parse_state(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise SandboxError(f"cannot read {path}: {exc.strerror}") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise SandboxError(
            f"{path} is damaged ({exc}); `tidemark sandbox down` clears it away"
        ) from exc


def write_state(directory: Path, state: SandboxState) -> None:
    """Replace the state file in one step, so that a reader never sees half of it."""
    path = directory / STATE_FILE
    fresh = path.with_name(f"{STATE_FILE}.new")
    fresh.write_text(json.dumps(asdict(state), indent=2), encoding="utf-8")
    fresh.replace(path)


def parse_state(raw: Mapping[str, Any]) -> SandboxState:
    """Build the state from parsed JSON; raise KeyError, TypeError or ValueError when malformed."""
    return SandboxState(
        cluster_id=raw["cluster_id"],
        java=raw["java"],
        cache=raw["cache"],
        options=SandboxOptions(**raw["options"]),
        nodes=tuple(_parse_node(node) for node in raw["nodes"]),
        was_ready=raw["was_ready"],
    )


def _parse_node(raw: Mapping[str, Any]) -> Node:
    process = raw["process"]
    return Node(
        id=raw["id"],
        role=Role(raw["role"]),
        port=raw["port"],
        sasl_port=raw["sasl_port"],
        tls_port=raw["tls_port"],
        metrics_port=raw["metrics_port"],
        process=None if process is None else ProcessId(**process),
    )
