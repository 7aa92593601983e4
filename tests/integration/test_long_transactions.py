"""Healthy transactions that are open for longer than a marker may take, and end within a round."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from collectors.session import Limits
from collectors.wire.api import LIST_TRANSACTIONS
from collectors.wire.pool import Answer, Call, Pool
from rules.facts.snapshot import Snapshot
from rules.judgement import Finding
from rules.verdict import Verdict
from service.app.cluster import bootstrap_addresses
from service.observe.cluster_reader import ClusterReader, Scope, Target
from service.observe.watch import Watcher
from service.runtime.clock import monotonic, pause, utc_now, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.settings import KafkaSettings
from tests.integration.clients import FLUSH_SECONDS, commit_offset, transactional_producer
from tests.integration.observing import ends, only

pytestmark = pytest.mark.integration

NewName = Callable[[str], str]

HELD_SECONDS = 1.7  # after which leaders are asked who holds an offset
PARTITIONS = 6
MOST_QUEUED = 2000  # records of the flood
ROUNDS = 6  # while a transaction is open
RULES = ("transaction_marker_stuck", "read_committed_consumers_blocked", "transaction_hanging")


class MeetingPool(Pool):
    """Connections between whose requests something happens: once the offsets are read."""

    meanwhile: Callable[[], object] | None = None

    def exchange(
        self, calls: Sequence[Call], *, timeout_seconds: float, keep_late: bool = False
    ) -> list[Answer]:
        """Let happen what is due before the coordinators are asked."""
        if self.meanwhile is not None and any(call.api is LIST_TRANSACTIONS for call in calls):
            happens, self.meanwhile = self.meanwhile, None
            happens()
        return super().exchange(calls, timeout_seconds=timeout_seconds, keep_late=keep_late)


class LongRounds:
    """Real rounds, between which seconds pass at once."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = KafkaSettings.model_validate({"bootstrap_servers": bootstrap})
        self.pool = MeetingPool(settings.security())
        self._reader = ClusterReader(
            Target(name="default", bootstrap=tuple(bootstrap_addresses(bootstrap))),
            self.pool,
            limits=Limits(),
            utc_now=utc_now,
        )
        self._began = utc_now()
        self._passed = timedelta(0)
        self.seen: Snapshot | None = None  # by the last round
        self._watcher = Watcher(
            "default", self, only(topic), utc_now=self._now, monotonic=self._uptime
        )

    def _now(self) -> datetime:
        return self._began + self._passed

    def _uptime(self) -> float:
        return self._passed.total_seconds()

    def read(self, scope: Scope) -> Snapshot:
        return replace(self._reader.read(scope), taken_at=self._now())

    @property
    def last_stable_offsets(self) -> list[int]:
        """Return those of the last round, by partition."""
        assert self.seen is not None
        found = self.seen.offsets.last_stable_offset.to_list()
        return [offset for offset in found if offset is not None]

    def round(self, seconds: float) -> list[Finding]:
        """Make a round so many seconds after the last one; return the breaches of these rules."""
        self._passed += timedelta(seconds=seconds)
        made = self._watcher.make_round()
        self.seen = made.snapshot
        return [
            finding
            for judgement in made.judged.judgements
            if judgement.rule.rule_id in RULES
            for finding in judgement.findings(Verdict.BREACH)
        ]

    def close(self) -> None:
        self._reader.close()


@contextmanager
def flood(bootstrap: str, topic: str) -> Iterator[None]:
    """Append records that nobody waits for, so that log ends run ahead of high watermarks."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, "linger.ms": 0})
    is_over = Event()

    def run() -> None:
        while not is_over.is_set():
            if len(producer) < MOST_QUEUED:
                for number in range(PARTITIONS):
                    producer.produce(topic, b"v" * 100, partition=number)
            producer.poll(0.001)

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        assert producer.flush(FLUSH_SECONDS) == 0


@pytest.fixture
def topic(admin: SandboxAdmin, new_name: NewName) -> str:
    name = new_name("long")
    admin.create_topic(name, partitions=PARTITIONS)
    return name


def begin(producer: Producer, topic: str) -> None:
    producer.begin_transaction()
    for number in range(PARTITIONS):
        producer.produce(topic, b"value", partition=number)
    assert producer.flush(FLUSH_SECONDS) == 0


@pytest.mark.parametrize("at_least", [31, pytest.param(80, marks=pytest.mark.variation)])
def test_a_long_transaction_that_ends_within_a_round_is_no_breach(
    cluster: Sandbox, reader: ClusterReader, topic: str, new_name: NewName, at_least: int
) -> None:
    seconds = at_least + random.Random().uniform(0, 15)
    bootstrap, group = cluster.bootstrap_servers, new_name("waits")
    producer = transactional_producer(bootstrap, new_name("tx"))
    rounds = LongRounds(bootstrap, topic)
    with flood(bootstrap, topic):
        begin(producer, topic)
        rounds.round(0)
        began = monotonic()
        starts = rounds.last_stable_offsets
        for number, start in enumerate(starts):
            commit_offset(bootstrap, group, topic, start, partition=number)
        for _ in range(ROUNDS):
            assert rounds.round(seconds / (ROUNDS + 1)) == []
        pause(max(0.0, began + HELD_SECONDS - monotonic()))

        def are_marked() -> bool:
            return all(ends(reader, topic, n)[0] > start for n, start in enumerate(starts))

        def commit() -> None:
            producer.commit_transaction()
            assert wait_until(are_marked, timeout_seconds=FLUSH_SECONDS)

        rounds.pool.meanwhile = commit
        assert rounds.round(seconds / (ROUNDS + 1)) == []
        assert rounds.last_stable_offsets == starts, "the offsets were read before the commit"
        assert rounds.round(1) == []
    rounds.close()
