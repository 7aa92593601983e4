"""A producer that knows when it appended each offset, groups beside it, and rounds in a rhythm."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from rules.time_lag import EndHistory, WhyAbsent
from service.observe.cluster_reader import ClusterReader, Scope
from service.observe.watch import Remembered, WatchedRound, Watcher
from service.runtime.clock import monotonic, pause, utc_now
from tests.integration.clients import FLUSH_SECONDS

STEADY, BURSTY, IDLE = range(3)
TICK_SECONDS = 0.1
BURST_TICKS = 23  # out of step with the rounds
INTERVAL_SECONDS = 0.8


@dataclass
class Appender:
    """Appends records and knows when: between sending each and its acknowledgement, in seconds."""

    bootstrap: str
    topic: str
    appended: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})

    def append(self, partition: int, count: int = 1) -> None:
        for _ in range(count):
            sent = utc_now().timestamp()

            def noted(error: KafkaError | None, message: Message, sent: float = sent) -> None:
                assert error is None, error
                offset = message.offset()
                assert offset is not None
                self.appended[partition, offset] = (sent, utc_now().timestamp())

            self.producer.produce(self.topic, b"value", partition=partition, on_delivery=noted)
        assert self.producer.flush(FLUSH_SECONDS) == 0

    def end(self, partition: int) -> int:
        return sum(place == partition for place, _ in list(self.appended))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Append in the background: one by one to one partition, in bursts to another."""
        is_over = threading.Event()

        def work() -> None:
            tick = 0
            while not is_over.wait(TICK_SECONDS):
                tick += 1
                self.append(STEADY)
                if tick % BURST_TICKS == 0:
                    self.append(BURSTY, 30)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            yield
        finally:
            is_over.set()
            worker.join()


class Groups:
    """Commits of groups without members."""

    def __init__(self, bootstrap: str, topic: str, prefix: str) -> None:
        self._settings = {"bootstrap.servers": bootstrap}
        self._topic, self.prefix = topic, prefix
        self._consumers: dict[str, Consumer] = {}

    def commit(self, name: str, partition: int, offset: int) -> None:
        group = f"{self.prefix}-{name}"
        if group not in self._consumers:
            self._consumers[group] = Consumer({**self._settings, "group.id": group})
        position = TopicPartition(self._topic, partition, offset)
        [answer] = self._consumers[group].commit(offsets=[position], asynchronous=False)
        assert answer.error is None, answer.error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for consumer in self._consumers.values():
            consumer.close()


class Rounds:
    """Rounds of one process in a steady rhythm, and when each observed the ends."""

    def __init__(self, reader: ClusterReader, scope: Scope, ends: EndHistory | None) -> None:
        self._watcher = Watcher(
            "default",
            reader,
            scope,
            utc_now=utc_now,
            monotonic=monotonic,
            remembered=Remembered(ends=ends),
        )
        self._due = monotonic()
        self.observations_us: list[int] = [] if ends is None else [ends.now_us]

    @property
    def ends(self) -> EndHistory | None:
        return self._watcher.remembered.ends

    def make(self) -> WatchedRound:
        pause(max(self._due - monotonic(), 0.0))
        self._due += INTERVAL_SECONDS
        made = self._watcher.make_round()
        assert self.ends is not None
        self.observations_us.append(self.ends.now_us)
        return made

    @property
    def apart_seconds(self) -> float:
        """Return by how much two observations were apart at most."""
        return max(after - before for before, after in pairwise(self.observations_us)) / 1e6


@dataclass(frozen=True, kw_only=True)
class ToldLag:
    """What was told of one commit in one round."""

    group: str
    partition: int
    committed: int
    end: int
    seconds: float
    why: WhyAbsent | None
    at: float


def lags_of(made: WatchedRound, prefix: str, observation_us: int) -> Iterator[ToldLag]:
    """Give group, partition, committed offset, lag in seconds and why there is none."""
    seen, lags = made.snapshot, made.time_lags
    assert seen is not None
    assert lags is not None
    for place, committed in enumerate(seen.commits.committed_offset.tolist()):
        row = int(seen.commits.row[place])
        name = seen.groups[int(seen.commits.group[place])].group_id.removeprefix(f"{prefix}-")
        end = seen.offsets.high_watermark[row]
        assert end is not None
        for lag in (lags.read_committed, lags.read_uncommitted):
            yield ToldLag(
                group=name,
                partition=seen.partitions.index.topic_partition(row).partition,
                committed=committed,
                end=end,
                seconds=float(lag.seconds[place]),
                why=lag.why(place),
                at=observation_us / 1e6,
            )
