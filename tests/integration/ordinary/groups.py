"""Groups of every fleet: long abandoned ones, and ones that commit without any member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from service.runtime.clock import monotonic, wait_until
from service.sandbox.workloads.clients import QUIET, client_config
from service.sandbox.workloads.counts import Counts, Tally
from service.sandbox.workloads.workload import Workload

AT_ONCE: Final = 50
ANSWER_SECONDS: Final = 120.0
COMMIT_SECONDS: Final = 1.0
COMMITTED_SECONDS: Final = 120.0
NOT_YET: Final = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


def abandon_groups(
    servers: str, names: Sequence[str], topic: str, positions: Sequence[Sequence[int]]
) -> None:
    """Commit for each group, one offset per partition, as a tool does; nobody ever joins.

    A coordinator that has just begun rejects at first.
    """
    client = AdminClient({"bootstrap.servers": servers, "log_level": QUIET})
    left = {name: dict(enumerate(of)) for name, of in zip(names, positions, strict=True)}

    def are_committed() -> bool:
        chosen = list(left.items())[:AT_ONCE]
        answers = {name: _commit(client, name, topic, offsets) for name, offsets in chosen}
        for name, answer in answers.items():
            places = answer.result(ANSWER_SECONDS).topic_partitions
            rejected = [place.error for place in places if place.error is not None]
            assert all(error.code() in NOT_YET for error in rejected), rejected
            if not rejected:
                del left[name]
        return not left

    assert wait_until(are_committed, timeout_seconds=COMMITTED_SECONDS, poll_seconds=0.1), left


def _commit(client: AdminClient, group: str, topic: str, offsets: dict[int, int]) -> Future[Any]:
    places = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
    request = [ConsumerGroupTopicPartitions(group, places)]
    [answer] = client.alter_consumer_group_offsets(request, request_timeout=ANSWER_SECONDS).values()
    return answer


@dataclass(eq=False, kw_only=True)
class Committers(Workload):
    """Groups without members that commit what was acknowledged, as stream processors do.

    One commit of a group at a time: none is sent before the fate of the one before is known.
    """

    bootstrap_servers: str = field(kw_only=False)
    groups: Sequence[str]
    ends: Callable[[], dict[int, int]]  # the next offset of each partition that has records

    @property
    def label(self) -> str:
        return f"{len(self.groups)} committing groups on {self.topic}"

    def _run(self) -> None:
        commits = {group: _LastCommit(self.tally) for group in self.groups}
        clients = {group: self._client(group, commits[group]) for group in self.groups}
        due = dict.fromkeys(self.groups, monotonic())
        try:
            while self._goes_on(0):
                offsets, now = self.ends(), monotonic()
                for group, client in clients.items():
                    client.poll(0)
                    if offsets and not commits[group].is_open and due[group] <= now:
                        commits[group].begin(client, self.topic, offsets)
                        due[group] = now + COMMIT_SECONDS
                self._pause(0.1)
        finally:
            for client in clients.values():
                client.close()

    def _client(self, group: str, commit: _LastCommit) -> Consumer:
        """Return a consumer that never joins: AdminClient dies where a coordinator is late.

        Its assertion `eonce->refcnt > 0` ended the whole process (librdkafka 2.16).
        """
        settings = {
            "group.id": group,
            "enable.auto.commit": False,
            "socket.timeout.ms": 6000,
            "topic.metadata.refresh.interval.ms": 2000,
            "on_commit": commit.end,
        }
        return Consumer(client_config(self.bootstrap_servers, self.security, self.tally, settings))


@dataclass(slots=True)
class _LastCommit:
    """The latest commit of a group, whose fate may not be known yet."""

    tally: Tally
    is_open: bool = False

    def begin(self, client: Consumer, topic: str, offsets: dict[int, int]) -> None:
        """Commit one offset per partition."""
        places = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        self.is_open = True
        try:
            client.commit(offsets=places, asynchronous=True)
        except KafkaException as exc:
            self.end(exc.args[0], [])

    def end(self, error: KafkaError | None, places: Sequence[TopicPartition]) -> None:
        """Count what became of it."""
        rejected = (
            [error] if error else [place.error for place in places if place.error is not None]
        )
        self.tally.add(Counts(acknowledged=not rejected, failed=bool(rejected)))
        if rejected:
            self.tally.note(str(rejected[0]))
        self.is_open = False
