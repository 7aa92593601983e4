"""The configuration that nodes are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.sandbox.cluster.properties import meta_properties, node_properties, render
from service.sandbox.cluster.state import PORTS_NEEDED, SandboxOptions, SandboxState, plan_nodes

DATA = Path("/sandbox/node-1/data")


def state(*, realistic: bool = False) -> SandboxState:
    return SandboxState(
        cluster_id="AAAAAAAAQACAAAAAAAAAAQ",
        java="/usr/bin/java",
        cache="/cache",
        options=SandboxOptions(realistic=realistic),
        nodes=plan_nodes(list(range(9000, 9000 + PORTS_NEEDED))),
    )


def of_node(node_id: int, *, realistic: bool = False) -> dict[str, str]:
    sandbox = state(realistic=realistic)
    return node_properties(sandbox, sandbox.node(node_id), data=DATA)


def test_a_broker_listens_on_loopback_only_with_and_without_a_password() -> None:
    assert of_node(2)["listeners"] == (
        "PLAINTEXT://127.0.0.1:9001,SASL://127.0.0.1:9004,TLS://127.0.0.1:9007"
    )
    assert of_node(2)["process.roles"] == "broker"


def test_the_controller_is_dedicated_and_alone_in_the_quorum() -> None:
    assert of_node(100)["process.roles"] == "controller"
    assert {of_node(n)["controller.quorum.voters"] for n in (100, 1, 2, 3)} == {
        "100@127.0.0.1:9012"
    }


def test_only_anonymous_and_admin_are_super_users() -> None:
    assert of_node(1)["super.users"] == "User:ANONYMOUS;User:admin"


@pytest.mark.parametrize(
    ("heartbeat", "session"),
    [
        ("broker.heartbeat.interval.ms", "broker.session.timeout.ms"),
        ("group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"),
        ("group.share.heartbeat.interval.ms", "group.share.session.timeout.ms"),
    ],
)
def test_a_session_outlasts_several_heartbeats(heartbeat: str, session: str) -> None:
    assert int(of_node(1)[session]) >= 4 * int(of_node(1)[heartbeat])


def test_realistic_leaves_kafkas_own_clocks() -> None:
    realistic = of_node(1, realistic=True)
    assert "broker.session.timeout.ms" not in realistic
    assert realistic["offsets.topic.num.partitions"] == "5"
    assert realistic["transaction.state.log.min.isr"] == "2"


def test_the_storage_of_a_broker_carries_cluster_and_node() -> None:
    identity = meta_properties("abc", 3)
    assert identity == {"version": "1", "cluster.id": "abc", "node.id": "3"}


def test_values_survive_javas_properties_format() -> None:
    assert render({"b": "C:\\x", "a": "grün 🌊"}) == "a=gr\\u00fcn \\ud83c\\udf0a\nb=C:\\\\x\n"
