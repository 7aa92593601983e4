"""`tidemark explain` on what Kafka's own tools print of a transaction that is open, of groups, and of a log on disk."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from service.sandbox.cluster import tools
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import node_layout
from service.terminal.exit_codes import ExitCode
from tests.integration.clients import commit_offset, produce_in_transaction, transactional_producer
from tests.integration.test_explain_cli import explain

pytestmark = pytest.mark.integration

TRANSACTIONS = "kafka-transactions.sh"


def printed(cluster: Sandbox, name: str, *arguments: str) -> str:
    """Return the command below a prompt, and what it prints."""
    output = tools.run_quietly(cluster, name, arguments)
    return f"[ops@broker-1 ~]$ {name} {' '.join(arguments)}\n{output}"


def test_an_open_transaction_is_followed_through_the_outputs_of_all_tools(
    cluster: Sandbox, admin: SandboxAdmin, new_name: Callable[[str], str]
) -> None:
    topic, id_, group = new_name("orders"), new_name("payments"), new_name("billing")
    admin.create_topic(topic)
    producer = transactional_producer(cluster.bootstrap_servers, id_)
    produce_in_transaction(producer, topic, 3)
    producer.commit_transaction(30)
    produce_in_transaction(producer, topic, 2)
    commit_offset(cluster.bootstrap_servers, group, topic, 4)
    log = node_layout(cluster.directory, 1).data / f"{topic}-0" / f"{0:020}.log"
    outputs = [
        printed(cluster, "kafka-topics.sh", "--describe", "--topic", topic),
        printed(cluster, TRANSACTIONS, "describe", "--transactional-id", id_),
        printed(cluster, TRANSACTIONS, "describe-producers", "--topic", topic, "--partition", "0"),
        printed(cluster, TRANSACTIONS, "find-hanging", "--topic", topic),
        printed(cluster, "kafka-consumer-groups.sh", "--describe", "--group", group),
        printed(cluster, "kafka-dump-log.sh", "--files", str(log), "--deep-iteration"),
    ]
    code, document = explain("\n".join(outputs))
    producer.abort_transaction(30)
    assert code == ExitCode.OK, document
    found = {row["reason"]: row for row in document["tools"]}
    assert set(found) == {
        "fully_replicated", "open_within_timeout", "coordinator_knows_it", "none_reported_hanging", "held_by_transaction",
        "open_at_end_of_text", "producers", "log_read",
    }  # fmt: skip
    assert "1 committed, 0 aborted, 1 without an end" in found["log_read"]["items"][0]["words"]
    assert found["open_within_timeout"]["items"][0]["transactional_id"] == id_
    assert found["held_by_transaction"]["items"][0]["group"] == group
