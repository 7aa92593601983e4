"""A broker that is killed, then the controller: what the rules say of real answers, minutes later.

The minutes are the snapshots' own: a round is judged again with a later time, and nothing waits for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from rules.catalogue.all_rules import judge_round
from rules.facts.brokers import ControllerState
from rules.facts.memory import Memory
from rules.facts.snapshot import Snapshot
from rules.judgement import Finding
from rules.remembering import view_of_round
from rules.verdict import Verdict
from service.observe.cluster_reader import Scope
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from tests.integration.conftest import MakeReader

pytestmark = pytest.mark.integration

KILLED = 2
PATIENCE_SECONDS = 60
MINUTE = timedelta(minutes=1)
BRIEFLY, LONG = timedelta(seconds=20), timedelta(minutes=11)
RULES = (
    "broker_gone",
    "broker_silent",
    "controller_absent",
    "controller_moves_often",
    "partition_offline",
    "partition_under_min_isr",
    "partition_under_replicated",
)


class Observer:
    """Rounds with one memory, which may be judged again as if they were made later."""

    def __init__(self, make_reader: MakeReader, scope: Scope) -> None:
        self._reader, self._scope = make_reader(), scope
        self._memory: Memory | None = None

    def read_until(self, condition: Callable[[Snapshot], bool]) -> Snapshot:
        """Make rounds until one of them fulfils the condition, and return it."""
        seen: list[Snapshot] = []

        def is_fulfilled() -> bool:
            seen.append(self._reader.read(self._scope))
            self._memory = view_of_round(seen[-1], self._memory).memory
            return condition(seen[-1])

        assert wait_until(is_fulfilled, timeout_seconds=PATIENCE_SECONDS, poll_seconds=0.2), seen[
            -1
        ]
        return seen[-1]

    def breaches(self, seen: Snapshot, later: timedelta) -> dict[str, list[Finding]]:
        """Return what is wrong by these rules if nothing changes for a time, with a round a minute."""
        memory = self._memory
        for minute in range(1, later // MINUTE + 1):
            again = replace(seen, taken_at=seen.taken_at + minute * MINUTE)
            memory = view_of_round(again, memory).memory
        view = view_of_round(replace(seen, taken_at=seen.taken_at + later), memory)
        judgements = judge_round(view, {}).judgements
        found = {j.rule.rule_id: list(j.findings(Verdict.BREACH)) for j in judgements}
        return {rule: found[rule] for rule in RULES if found[rule]}


def test_a_killed_broker_explains_its_partitions_and_an_absent_controller_is_told(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    safe, single = new_name("brokers-safe"), new_name("brokers-single")
    admin = SandboxAdmin(faults.bootstrap_servers)
    admin.create_topic(safe, assignment=[[1, KILLED, 3]], configs={"min.insync.replicas": "2"})
    admin.create_topic(single, assignment=[[KILLED]])
    observer = Observer(make_reader, Scope())
    healthy = observer.read_until(
        lambda seen: (
            {safe, single} <= set(seen.partitions.index.topics)
            and seen.quorum.state is ControllerState.ACTIVE
            and seen.contact.answered == {1, 2, 3}
        )
    )
    assert healthy.controller == CONTROLLER_ID
    assert observer.breaches(healthy, LONG) == {}

    faults.kill(KILLED)
    gone = observer.read_until(
        lambda seen: (
            KILLED not in {broker.broker_id for broker in seen.brokers}
            and seen.partitions.leader[row_of(seen, single)] is None
        )
    )
    assert "broker_gone" not in observer.breaches(gone, BRIEFLY)
    wrong = observer.breaches(gone, LONG)
    [broker] = wrong["broker_gone"]
    assert (broker.labels["broker"], broker.reason) == (str(KILLED), "partitions_offline")
    assert broker.evidence["address"] == faults.broker_address(KILLED)
    [offline] = [f for f in wrong["partition_offline"] if f.labels["topic"] == single]
    [out] = [f for f in wrong["partition_under_replicated"] if f.labels["topic"] == safe]
    for partition in (offline, out):
        assert partition.reason == "brokers_gone"
        rows = partition.evidence["gone_brokers"]
        assert isinstance(rows, list)
        assert [row["broker"] for row in rows] == [KILLED]
    assert not wrong.keys() & {"broker_silent", "controller_absent"}

    faults.kill(CONTROLLER_ID)
    absent = observer.read_until(lambda seen: seen.quorum.state is ControllerState.NO_ANSWER)
    assert absent.contact.answered == {1, 3}, "all else is observed as before"
    row = row_of(absent, safe)
    assert absent.offsets.high_watermark[row] is not None
    told = observer.breaches(absent, LONG)
    assert [finding.reason for finding in told["controller_absent"]] == ["no_answer"]
    assert "broker_silent" not in told


def row_of(seen: Snapshot, topic: str) -> int:
    row = seen.partitions.index.row(topic, 0)
    assert row is not None
    return row
