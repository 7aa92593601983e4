"""A healthy pipeline breaches nothing, whatever ordinary things happen to it meanwhile.

A minute and a half of load with a broker that dies and comes back, a consumer that joins and leaves,
and a topic that is created and deleted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from rules.facts.snapshot import Snapshot
from rules.verdict import Verdict
from service import clock
from service.rounds import ClusterReader, Scope
from service.sandbox.admin import SandboxAdmin
from service.sandbox.cluster import Sandbox
from service.sandbox.workloads.consumer import GroupConsumer
from service.sandbox.workloads.standard import WorkloadPlan, standard_workload
from service.watch import WatchedRound, Watcher
from tests.integration.conftest import MakeReader
from tests.integration.looking import why_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

QUIET_SECONDS = 90
ROUND_SECONDS = 2.0


def told(found: WatchedRound) -> list[str]:
    return [
        f"{one.rule.rule_id} {dict(one.labels)} {one.reason} {dict(one.evidence)}"
        for judgement in found.judged.judgements
        for one in judgement.findings(Verdict.BREACH)
    ]


class Happenings:
    """What happens to the cluster, one thing after the other, each at its second."""

    def __init__(self, cluster: Sandbox, admin: SandboxAdmin, names: list[str]) -> None:
        topic, group, passing = names
        self.stack = ExitStack()
        consumer = GroupConsumer(cluster.bootstrap_servers, topic=topic, group=group)
        self.due: list[tuple[float, Callable[[], object]]] = [
            (10, lambda: self.stack.enter_context(consumer)),
            (20, lambda: admin.create_topic(passing, partitions=2)),
            (30, lambda: cluster.kill(3)),
            (45, self.stack.close),
            (50, lambda: cluster.start(3)),
            (70, lambda: admin.delete_topic(passing)),
        ]

    def until(self, elapsed: float) -> None:
        """Let happen what is due by now."""
        while self.due and self.due[0][0] <= elapsed:
            self.due.pop(0)[1]()


def test_healthy_load_breaches_nothing(
    faults: Sandbox,
    admin: SandboxAdmin,
    make_reader: MakeReader,
    new_name: Callable[[str], str],
) -> None:
    topic = new_name("quiet")
    reader: ClusterReader = make_reader(request_timeout_seconds=2.0)
    plan = WorkloadPlan(topic=topic, rate=100, abort_every=5, slow_rate=50)
    ours = re.compile(re.escape(topic) + ".*")  # other tests leave groups that nobody reads for
    scope = Scope(topics=ours, groups=ours)
    watcher = Watcher("quiet", reader, scope, utc_now=clock.utc_now, monotonic=clock.monotonic)
    happenings = Happenings(faults, admin, [topic, f"{topic}-fast", f"{topic}-passing"])
    complete = changes = 0
    with standard_workload(faults, plan), happenings.stack:
        began = clock.monotonic()
        while (elapsed := clock.monotonic() - began) < QUIET_SECONDS:
            happenings.until(elapsed)
            found = watcher.make_round()
            assert told(found) == [], seen_by(found.snapshot)
            complete += found.snapshot is not None and not found.snapshot.gaps
            changes += found.leaders_moved
            clock.pause(ROUND_SECONDS)
    assert happenings.due == []
    assert complete > QUIET_SECONDS / ROUND_SECONDS / 3
    assert changes > 0


def seen_by(snapshot: Snapshot | None) -> str:
    return "no round" if snapshot is None else why_of(snapshot)
