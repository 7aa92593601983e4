"""The log files of a sandbox's nodes, as a setting names them."""

from __future__ import annotations

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
