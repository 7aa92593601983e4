"""Wait for nodes, and say what went wrong when they do not come."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from rules.errors import SandboxError
from service.runtime.clock import wait_until
from service.sandbox.cluster.layout import NodeLayout, node_layout
from service.sandbox.cluster.ports import accepts
from service.sandbox.cluster.processes import Liveness, liveness
from service.sandbox.cluster.state import Node, Role, SandboxState

READY_SECONDS = 90.0  # a busy machine; an idle one needs less than ten
ANSWER_SECONDS = 1.0
CHANGE_SECONDS = 60.0  # of `--realistic`: 30 until a replica is out, 9 until a broker is
ERROR_LINE = re.compile(r"\b(ERROR|FATAL|Invalid|\w*(Error|Exception))\b")


def last_error_line(text: str) -> str | None:
    """Return the last line of a log that reports an error."""
    lines = [line.strip() for line in text.splitlines() if ERROR_LINE.search(line)]
    return lines[-1] if lines else None


def explain(paths: NodeLayout) -> str:
    """Name the log file of a node and its last error line."""
    # What Java itself says (no memory, a bad option) explains what Kafka logs, so it comes first.
    for path in (paths.output, paths.logs / "server.log", paths.logs / "controller.log"):
        line = last_error_line(path.read_text(errors="replace")) if path.exists() else None
        if line is not None:
            return f"{path} says: {line}"
    return f"see {paths.logs / 'server.log'}"


def wait_ready(directory: Path, state: SandboxState, awaited: Iterable[Node]) -> None:
    """Wait until each awaited node serves; raise SandboxError when one dies or takes too long.

    A broker serves when it answers on its own listener and lists itself: Kafka lists only
    brokers that are registered and unfenced, and opens the listener only after that.
    """
    waiting = {node.id: node for node in awaited}

    def all_serve() -> bool:
        for node in list(waiting.values()):
            if liveness(node.process) is Liveness.DEAD:
                raise SandboxError(
                    f"{node.label} ended while starting; {explain(node_layout(directory, node.id))}"
                )
            if _serves(node):
                del waiting[node.id]
        return not waiting

    if not wait_until(all_serve, timeout_seconds=READY_SECONDS):
        node = next(iter(waiting.values()))
        raise SandboxError(
            f"{node.label} was not ready within {READY_SECONDS:.0f} s; "
            f"{explain(node_layout(directory, node.id))}"
        )
    _wait_for_each_other(state)


def await_condition(
    condition: Callable[[], bool], otherwise: str, *, seconds: float = CHANGE_SECONDS
) -> None:
    """Wait for a condition; raise with `otherwise` when it does not come true."""
    if not wait_until(condition, timeout_seconds=seconds):
        raise SandboxError(f"{otherwise} after {seconds:.0f} s")


def listed_brokers(address: str) -> frozenset[int]:
    """Return the ids of the brokers that one broker lists; empty while it does not answer."""
    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    try:
        return frozenset(client.list_topics(timeout=ANSWER_SECONDS).brokers)
    except KafkaException:
        return frozenset()


def _serves(node: Node) -> bool:
    if not (accepts(node.port) and accepts(node.metrics_port)):
        return False
    return node.role is Role.CONTROLLER or node.id in listed_brokers(node.address)


def _wait_for_each_other(state: SandboxState) -> None:
    running = [b for b in state.brokers if liveness(b.process) is Liveness.RUNNING]
    expected = {broker.id for broker in running}
    complete = wait_until(
        lambda: all(expected <= listed_brokers(broker.address) for broker in running),
        timeout_seconds=READY_SECONDS,
    )
    if not complete:
        raise SandboxError(f"brokers {sorted(expected)} run but do not all list each other")
