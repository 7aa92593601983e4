"""Write a node's files: configuration, identity of its storage, the cluster's first metadata."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

from service.sandbox.cluster.commands import tool_command
from service.sandbox.cluster.layout import NodeLayout, node_layout
from service.sandbox.cluster.processes import run_to_end
from service.sandbox.cluster.properties import meta_properties, node_properties, render
from service.sandbox.cluster.state import Node, Role, SandboxState
from service.sandbox.cluster.users import format_arguments

FORMAT_SECONDS = 60.0


def new_cluster_id() -> str:
    """Return a random id in Kafka's form; one that begins with a dash would be read as an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def format_node(directory: Path, state: SandboxState, node: Node) -> None:
    """Make the node's folders and files.

    Only the controller needs Kafka's StorageTool, which writes feature levels and SCRAM users;
    a broker's storage is its identity, and writing that here saves a Java start per broker.
    """
    paths = node_layout(directory, node.id)
    paths.make()
    properties = render(node_properties(state, node, data=paths.data))
    paths.properties.write_text(properties, encoding="ascii")
    if node.role is Role.CONTROLLER:
        _run_storage_tool(state, paths)
    else:
        identity = render(meta_properties(state.cluster_id, node.id))
        (paths.data / "meta.properties").write_text(identity, encoding="ascii")


def _run_storage_tool(state: SandboxState, paths: NodeLayout) -> None:
    tool = tool_command(state, "kafka.tools.StorageTool", scratch=paths.scratch)
    arguments = ["format", "-t", state.cluster_id, "-c", str(paths.properties)]
    users = format_arguments() if state.release.has_scram_users else []
    run_to_end(
        [*tool, *arguments, *state.release.features, *users],
        seconds=FORMAT_SECONDS,
        otherwise="Kafka's StorageTool rejected the controller's folder",
    )
