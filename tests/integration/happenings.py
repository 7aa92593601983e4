"""What ordinarily happens to a healthy cluster, one thing after the other, over and over.

A broker dies and comes back, or all of them are restarted in turn; leaders go back to their
preferred brokers, and a partition is reassigned; the application is restarted and
takes its transactional id over; a member joins a group and leaves it; a topic is created, written,
read to its end and deleted. Nobody loses anything by it.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from service.runtime.clock import pause, wait_until
from service.sandbox.cluster import processes
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.processes import Liveness
from service.sandbox.cluster.tools import run_quietly
from service.sandbox.workloads.consumer import GroupConsumer, GroupProtocol
from service.sandbox.workloads.standard import WorkloadPlan
from tests.integration.clients import commit_offset, produce

CYCLE_SECONDS: Final = 90
KILLED: Final = (3, 1, 2)  # another broker in every other cycle
RESTARTED: Final = (1, 2, 3)
RECORDS: Final = 10
WHOLE_SECONDS: Final = 180.0
SHUTDOWN_SECONDS: Final = 180.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Happening:
    """Something to be done so many seconds after the beginning."""

    second: float
    what: str
    act: Callable[[], object]


class Happenings:
    """All that happens within a time."""

    def __init__(
        self,
        cluster: Sandbox,
        plan: WorkloadPlan,
        *,
        is_whole: Callable[[], bool],
        load_moves: Callable[[], None],
        restart_application: Callable[[], None],
        members: ExitStack,
    ) -> None:
        """`is_whole` tells whether all replicas are in sync, `load_moves` raises if the load does
        not go on; `members` ends members at last.
        """
        self._restart_application = restart_application
        self._cluster = cluster
        self._admin = SandboxAdmin(cluster.bootstrap_servers)
        self._plan = plan
        self._is_whole = is_whole
        self._load_moves = load_moves
        self._members = members
        self.done: Counter[str] = Counter()  # how often, by what an operator calls it

    def within(self, seconds: float, cycle_seconds: float = CYCLE_SECONDS) -> list[Happening]:
        """Return what happens, in its order: whole cycles, at least one, in the time for each."""
        cycles, pace = max(1, int(seconds // cycle_seconds)), cycle_seconds / CYCLE_SECONDS
        found = [
            replace(one, second=number * cycle_seconds + pace * one.second)
            for number in range(cycles)
            for one in (*self._comings_and_goings(number), *self._of_brokers(number))
        ]
        return sorted(found, key=lambda one: one.second)

    def _comings_and_goings(self, number: int) -> list[Happening]:
        name = f"{self._plan.topic}-passing-{number}"
        return [
            Happening(10, "a member joins each group", self._join),
            Happening(20, f"topic {name} is created and read", partial(self._pass, name)),
            Happening(45, "the members leave", self._members.close),
            Happening(60, "the application is restarted", self._restart_application),
            Happening(62, "leaders go back to their preferred brokers", self._elect_preferred),
            Happening(75, "a partition is reassigned", partial(self._reassign, number)),
            Happening(80, f"topic {name} is deleted", partial(self._admin.delete_topic, name)),
            Happening(85, "the load has to go on", self._load_moves),
        ]

    def _of_brokers(self, number: int) -> list[Happening]:
        turn, is_restart = divmod(number, 2)
        if is_restart:
            return [
                Happening(second, f"broker {node} is restarted", partial(self._restart, node))
                for second, node in zip((30, 50, 70), RESTARTED, strict=True)
            ]
        node = KILLED[turn % len(KILLED)]
        return [
            Happening(30, f"broker {node} is killed", partial(self._kill, node)),
            Happening(50, f"broker {node} comes back", partial(self._cluster.start, node)),
        ]

    def _elect_preferred(self) -> None:
        election = ("--election-type", "preferred", "--all-topic-partitions")
        self._wait_whole()
        run_quietly(self._cluster, "kafka-leader-election.sh", election)
        self.done["preferred election"] += 1

    def _reassign(self, number: int) -> None:
        """Give a partition of the load its replicas in another order: another one leads it then."""
        replicas = [RESTARTED[(number + step) % len(RESTARTED)] for step in range(len(RESTARTED))]
        move = {"topic": self._plan.output_topic, "partition": 0, "replicas": replicas}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as plan:
            json.dump({"version": 1, "partitions": [move]}, plan)
            plan.flush()
            wanted = ("--reassignment-json-file", plan.name, "--execute")
            run_quietly(self._cluster, "kafka-reassign-partitions.sh", wanted)
        self.done["reassignment"] += 1

    def _join(self) -> None:
        servers, topic = self._cluster.bootstrap_servers, self._plan.topic
        for stem, rate, protocol in (
            ("fast", None, GroupProtocol.CONSUMER),
            ("slow", self._plan.slow_rate, GroupProtocol.CLASSIC),
        ):
            member = GroupConsumer(
                servers,
                topic=self._plan.output_topic,
                group=f"{topic}-{stem}",
                rate=rate,
                protocol=protocol,
            )
            self._members.enter_context(member)

    def _pass(self, topic: str) -> None:
        servers = self._cluster.bootstrap_servers
        self._admin.create_topic(topic, partitions=2)
        produce(servers, topic, RECORDS, is_idempotent=True)
        commit_offset(servers, f"{topic}-reader", topic, RECORDS)

    def _kill(self, node: int) -> None:
        self._wait_whole()
        self._cluster.kill(node)
        self.done["broker killed"] += 1

    def _restart(self, node: int) -> None:
        """Restart a broker as an operator does: in order, and when no other one is missing."""
        self._wait_whole()
        process = self._cluster.state.node(node).process
        assert process is not None
        processes.terminate(process)
        assert wait_until(
            lambda: processes.liveness(process) is Liveness.DEAD, timeout_seconds=SHUTDOWN_SECONDS
        ), f"broker {node} did not shut down"
        self._cluster.start(node)
        self.done["broker restarted"] += 1
        self.done["rolling restart"] += node == RESTARTED[-1]

    def _wait_whole(self) -> None:
        assert wait_until(self._is_whole, timeout_seconds=WHOLE_SECONDS, poll_seconds=0.3), (
            "a broker is to go while replicas of another are still behind"
        )


def let_happen(
    happenings: list[Happening], *, seconds: float, elapsed: Callable[[], float]
) -> None:
    """Do each at its second, or as soon after it as those before it allow; last to the end."""
    for one in happenings:
        pause(max(0.0, one.second - elapsed()))
        logger.info("%4.0f s: %s", elapsed(), one.what)
        one.act()
    pause(max(0.0, seconds - elapsed()))
