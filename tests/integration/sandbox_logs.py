"""The log files of a sandbox's nodes: as a setting names them, and what a leader wrote of its replicas."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import Role


def log_files_of(cluster: Sandbox) -> list[dict[str, Any]]:
    """Return the setting `broker_logs.files` for all logs of all nodes, each a source of its own."""
    return [
        {
            "path": f"{cluster.log_directory(node.id)}/*.log",
            "name": node.label,
            **({"broker_id": node.id} if node.role is Role.BROKER else {}),
        }
        for node in cluster.state.nodes
    ]


def when_sole_in_sync(cluster: Sandbox, topic: str, partition: str) -> list[datetime]:
    """Return when a leader of a partition wrote that no other replica is in sync any more (UTC)."""
    place = rf"\[Partition {re.escape(topic)}-{partition} broker=\d+\]"
    found = _lines(cluster, rf"{place} Shrinking ISR from [\d,]+ to (\d+)\. ")
    return [time for time, _ in found]


def when_fenced(cluster: Sandbox) -> list[tuple[datetime, int]]:
    """Return when the controller wrote that a broker's session had timed out (UTC), and of which broker."""
    head = r"\[QuorumController id=\d+\] "
    found = _lines(cluster, head + r"Fencing broker (\d+) at epoch \d+ because its session")
    return [(time, int(broker)) for time, broker in found]


def _lines(cluster: Sandbox, form: str) -> list[tuple[datetime, str]]:
    """Return the time of each line of a form in the logs of all nodes, with the group that it has."""
    line = re.compile(rf"(?m)^\[(\S+ [\d:]+),\d+\] \w+ {form}")
    folders = (cluster.log_directory(node.id) for node in cluster.state.nodes)
    logs = (log for folder in folders for log in folder.glob("*.log"))
    found = (match for log in logs for match in line.findall(log.read_text("utf-8", "replace")))
    return [(datetime.fromisoformat(f"{time}+00:00"), group) for time, group in found]
