"""Kafka's tools by name, and what is filled in for them."""

from __future__ import annotations

import pytest

from service.sandbox.cluster.tools import TOOLS, find_tool, with_servers

SERVERS = "a:1,b:2"


@pytest.mark.parametrize(
    ("name", "arguments", "filled"),
    [
        pytest.param(
            "kafka-topics.sh",
            ["--list"],
            ["--bootstrap-server", SERVERS, "--list"],
            id="missing",
        ),
        pytest.param(
            "kafka-transactions.sh",
            ["abort", "--topic", "t"],
            ["--bootstrap-server", SERVERS, "abort", "--topic", "t"],
            id="before-a-subcommand",
        ),
        pytest.param(
            "kafka-cluster.sh",
            ["cluster-id"],
            ["cluster-id", "--bootstrap-server", SERVERS],
            id="of-a-subcommand",
        ),
        pytest.param("kafka-cluster.sh", [], [], id="of-no-subcommand"),
        pytest.param(
            "kafka-topics.sh",
            ["--bootstrap-server", "c:3", "--list"],
            ["--bootstrap-server", "c:3", "--list"],
            id="arguments",
        ),
        pytest.param(
            "kafka-topics.sh",
            ["--bootstrap-server=c:3"],
            ["--bootstrap-server=c:3"],
            id="given-in-one-word",
        ),
        pytest.param(
            "kafka-metadata-quorum.sh",
            ["--bootstrap-controller", "c:3", "describe", "--status"],
            ["--bootstrap-controller", "c:3", "describe", "--status"],
            id="asks-a-controller",
        ),
        pytest.param("kafka-dump-log.sh", ["--files", "f"], ["--files", "f"], id="reads-files"),
    ],
)
def test_the_brokers_addresses_are_filled_in(
    name: str, arguments: list[str], filled: list[str]
) -> None:
    assert with_servers(TOOLS[name], arguments, SERVERS) == filled


def test_a_tool_is_found_with_and_without_its_ending() -> None:
    assert find_tool("kafka-topics") is find_tool("kafka-topics.sh") is TOOLS["kafka-topics.sh"]
    assert find_tool("kafka-nonsense.sh") is None
