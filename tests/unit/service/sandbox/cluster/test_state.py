"""What the sandbox remembers."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from rules.errors import SandboxError
from service.sandbox.cluster.releases import DEFAULT_VERSION
from service.sandbox.cluster.state import (
    PORTS_NEEDED,
    ProcessId,
    Role,
    SandboxOptions,
    SandboxState,
    parse_state,
    plan_nodes,
)


def state() -> SandboxState:
    stored = SandboxState(
        cluster_id="abc",
        java="/usr/bin/java",
        cache="/cache",
        options=SandboxOptions(heap="300m", realistic=True, port_base=9000),
        nodes=plan_nodes(list(range(9000, 9000 + PORTS_NEEDED))),
    )
    return stored.with_process(2, ProcessId(pid=17, started=1.5))


def test_the_state_reads_back_what_was_written() -> None:
    assert parse_state(json.loads(json.dumps(asdict(state())))) == state()


def test_a_sandbox_that_was_made_before_releases_could_be_chosen_is_of_the_default_one() -> None:
    stored = json.loads(json.dumps(asdict(state())))
    del stored["options"]["kafka_version"]
    assert parse_state(stored).release.version == DEFAULT_VERSION


def test_no_port_is_given_out_twice_and_none_is_left() -> None:
    used = [port for node in state().nodes for port in node.ports]
    assert sorted(used) == list(range(9000, 9000 + PORTS_NEEDED))


def test_the_plain_ports_of_the_brokers_come_first() -> None:
    assert state().bootstrap_servers == "127.0.0.1:9000,127.0.0.1:9001,127.0.0.1:9002"
    assert [node.role for node in state().brokers] == [Role.BROKER] * 3


def test_only_the_named_node_gets_the_process() -> None:
    assert [node.id for node in state().nodes if node.process is not None] == [2]


def test_an_unknown_node_is_rejected_with_the_known_ids() -> None:
    with pytest.raises(SandboxError, match=r"no node 7: brokers are 1, 2, 3"):
        state().node(7)


@pytest.mark.parametrize("missing", ["nodes", "options", "cluster_id"])
def test_a_state_without_a_part_is_malformed(missing: str) -> None:
    raw = {key: value for key, value in asdict(state()).items() if key != missing}
    with pytest.raises(KeyError):
        parse_state(raw)
