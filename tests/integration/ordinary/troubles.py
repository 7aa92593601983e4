"""The families of ordinary trouble, one after the other; nobody loses anything by them."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from rules.errors import SandboxError
from service.runtime.clock import pause, utc_now, wait_until
from service.sandbox.workloads.raw_cluster import OF_GROUP, OF_TRANSACTION, RawCluster
from tests.integration.conftest import let_all_run
from tests.integration.ordinary.operating import Operator
from tests.integration.ordinary.plan import Plan
from tests.integration.ordinary.topics import BROKERS, OFFSETS, TRANSACTIONS, Topics
from tests.integration.ordinary.transactions import Pool

SESSION_SECONDS: Final[dict[bool, float]] = {True: 9.0, False: 4.0}  # of Kafka, of the sandbox

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that was done to the cluster."""

    what: str
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One family, when all of it is over."""

    name: str
    count: int
    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return (self.end - self.begin).total_seconds()


@dataclass(kw_only=True)
class Troubles:
    """Makes what a plan says, and remembers each action."""

    operator: Operator
    plan: Plan
    topics: Topics
    groups: Sequence[str]
    pool: Pool
    chance: random.Random
    await_complete: Callable[[], None]  # until each service has had a complete round
    families: list[Family] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # what ended a family early

    def make_all(self) -> None:
        """Make the families in their order; long transactions go on beside them."""
        plan = self.plan
        self._family("long transactions alone", plan.transactions, self._transactions)
        self.pool.want(plan.transactions_beside)
        self._family("freezes of a leader", plan.freezes, self._freezes)
        self._family("reassignments", plan.reassignments, self._reassignments)
        self._family("rolling restarts", plan.rolling_restarts, self._rolling_restarts)
        self._family("coordinator moves", plan.coordinator_moves, self._coordinator_moves)

    def _family(self, name: str, count: int, make: Callable[[int], None]) -> None:
        if not count:
            return
        begin = utc_now()
        logger.info("%s: %d", name, count)
        try:
            make(count)
        except (AssertionError, SandboxError) as exc:  # what was seen until then counts
            self.errors.append(f"{name}: {exc}")
            let_all_run(self.operator.cluster)
        self.families.append(Family(name=name, count=count, begin=begin, end=utc_now()))

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        begin = utc_now()
        logger.info("%s", what)
        yield
        self.actions.append(Action(what=what, begin=begin, end=utc_now()))

    def _transactions(self, count: int) -> None:
        """Let nothing else happen until so many have ended."""
        self.pool.want(self.plan.transactions_at_once)
        limit = 60.0 * (2 + count / self.plan.transactions_at_once)
        assert wait_until(
            lambda: len(self.pool.results) >= count, timeout_seconds=limit, poll_seconds=1.0
        ), f"{len(self.pool.results)} of {count} transactions ended"
        self.pool.want(self.plan.transactions_beside)
        assert wait_until(lambda: self.pool.is_as_wanted, timeout_seconds=180, poll_seconds=1.0)

    def _freezes(self, count: int) -> None:
        for number, seconds in enumerate(self._lengths(count)):
            topic = self.topics.busy[number % len(self.topics.busy)]
            self._spread_leaders()
            leader = self.chance.choice(self.operator.placed(topic)).leader
            with self._noted(f"freeze: broker {leader}, a leader of {topic}, {seconds:.1f} s"):
                self.operator.freeze(leader, seconds)
            self._settle(2, 9)

    def _lengths(self, count: int) -> list[float]:
        """Return lengths that cover the whole range, the short ones more closely, in any order."""
        shortest, longest = self.plan.shortest_freeze, self.plan.longest_freeze
        lengths = [
            shortest + (longest - shortest) * ((number + self.chance.random()) / count) ** 1.5
            for number in range(count)
        ]
        self.chance.shuffle(lengths)
        return lengths

    def _reassignments(self, count: int) -> None:
        self._spread_leaders()
        for number in range(count):
            topic = self.topics.orders if number % 4 == 3 else self.topics.pairs
            placed = self.operator.placed(topic)
            partition = self.chance.randrange(len(placed))
            before = [int(broker) for broker in placed[partition].replicas]
            after = self._other_replicas(before, leader=int(placed[partition].leader))
            with self._noted(f"reassignment: {topic}-{partition} from {before} to {after}"):
                self.operator.reassign(topic, {partition: after})
                self.operator.elect_preferred([topic])
            self._pause(0.5, 7)
        self._settle(1, 3)

    def _other_replicas(self, before: list[int], *, leader: int) -> list[int]:
        """Return as many replicas, of which another one is to lead."""
        while True:
            after = self.chance.sample(BROKERS, len(before))
            if after != before and after[0] != leader:
                return after

    def _rolling_restarts(self, count: int) -> None:
        for _ in range(count):
            self._spread_leaders()
            for broker in self.chance.sample(BROKERS, len(BROKERS)):
                self.operator.wait_whole()
                with self._noted(f"restart: broker {broker}"):
                    self.operator.restart(broker)
            self._settle(1, 6)

    def _coordinator_moves(self, count: int) -> None:
        ways = (self._freeze_coordinator, self._kill_coordinator, *2 * (self._move_coordinators,))
        for number in range(count):
            self._spread_leaders()
            is_of_groups = number % 2 == (number // len(ways)) % 2
            ways[number % len(ways)](is_of_groups=is_of_groups)
            self._settle(2, 6)

    def _freeze_coordinator(self, *, is_of_groups: bool) -> None:
        broker = self._coordinator(is_of_groups=is_of_groups)
        least = SESSION_SECONDS[self.plan.realistic]
        seconds = self.chance.uniform(least + 3, 2 * least + 5)
        with self._noted(f"freeze of a coordinator: broker {broker}, {seconds:.1f} s"):
            self.operator.freeze(broker, seconds)

    def _kill_coordinator(self, *, is_of_groups: bool) -> None:
        broker, seconds = self._coordinator(is_of_groups=is_of_groups), self.chance.uniform(1, 6)
        with self._noted(f"kill of a coordinator: broker {broker}, started {seconds:.1f} s later"):
            self.operator.kill(broker, seconds)

    def _move_coordinators(self, *, is_of_groups: bool) -> None:
        """Reassign all that one broker coordinates, so that another one does."""
        topic = OFFSETS if is_of_groups else TRANSACTIONS
        broker = self._coordinator(is_of_groups=is_of_groups)
        moves = {
            number: self._other_replicas(list(map(int, placed.replicas)), leader=broker)
            for number, placed in enumerate(self.operator.placed(topic))
            if placed.leader == broker
        }
        with self._noted(f"move of coordinators: {len(moves)} of {topic} from broker {broker}"):
            self.operator.reassign(topic, moves)
            self.operator.elect_preferred([topic])

    def _coordinator(self, *, is_of_groups: bool) -> int:
        with RawCluster(self.operator.cluster) as raw:
            if is_of_groups:
                return int(raw.coordinator(self.chance.choice(self.groups), OF_GROUP))
            part = self.chance.choice(self.pool.parts)
            return int(raw.coordinator(part.transactional_id, OF_TRANSACTION))

    def _spread_leaders(self) -> None:
        """Let leaders go home: whoever was away leads nothing, and nothing could happen to it."""
        self.operator.wait_whole()
        self.operator.elect_preferred((*self.topics.busy, OFFSETS, TRANSACTIONS))
        self._pause(1, 4)

    def _settle(self, shortest: float, longest: float) -> None:
        """Let the cluster heal; now and then so long that nobody can be blind for minutes."""
        self.operator.wait_whole()
        self._pause(shortest, longest)
        if len(self.actions) % self.plan.actions_unseen == 0:
            self.await_complete()

    def _pause(self, shortest: float, longest: float) -> None:
        pause(self.plan.pause_factor * self.chance.uniform(shortest, longest))
