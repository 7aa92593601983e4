"""The log files of a sandbox's nodes: as a setting names them, and what a leader wrote of its replicas."""

from __future__ import annotations

import re
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


def was_sole_in_sync(cluster: Sandbox, topic: str, partition: str) -> bool:
    """Return whether a leader of a partition wrote that no other replica is in sync."""
    shrank = re.compile(
        rf"\[Partition {re.escape(topic)}-{partition} broker=\d+\] Shrinking ISR from [\d,]+ to \d+\. "
    )
    folders = (cluster.log_directory(node.id) for node in cluster.state.nodes)
    logs = (log for folder in folders for log in folder.glob("*.log"))
    return any(shrank.search(log.read_text("utf-8", "replace")) for log in logs)
