"""What changes on real brokers, one thing after the other, and what rounds report of it: exactly that.

Settings are read in every round here, and not once a minute, so that nothing waits for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from collectors import configs
from rules.facts.change_events import ChangeEvent
from rules.facts.identity import TopicId
from service.app.feeds import log_files
from service.observe.cluster_reader import ClusterReader, Scope
from service.observe.feeds import LogFeed
from service.observe.watch import Remembered, Watcher
from service.runtime.clock import monotonic, utc_now, wait_until
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.tools import run_quietly
from service.settings import BrokerLogSettings
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.integration.clients import produce
from tests.integration.conftest import MakeReader
from tests.kafka_release import SCRAM_USERS

pytestmark = pytest.mark.integration

PATIENCE_SECONDS: Final = 60
STOPPED: Final = 2
RECORD: Final = b"x" * 50_000
RECORDS: Final = 100  # 5 MB: more than a follower fetches at once
THROTTLE: Final = 10_000  # bytes per second: a copy of them takes minutes

Told = tuple[str, str, str | None, str | None]  # kind, subjects, before, after


class Rounds:
    """Rounds of one process after another, each with the memory that the one before stored."""

    def __init__(self, make_reader: MakeReader, feeds: Sequence[LogFeed] = ()) -> None:
        self._make_reader, self._feeds = make_reader, feeds
        self._watcher = self._start(Remembered())
        self.events: list[ChangeEvent] = []  # since they were taken

    def _start(self, remembered: Remembered) -> Watcher:
        reader: ClusterReader = self._make_reader()
        return Watcher(
            "default",
            reader,
            Scope(),
            utc_now=utc_now,
            monotonic=monotonic,
            remembered=remembered,
            feeds=self._feeds,
        )

    def restart(self) -> None:
        """End the process, and begin another one with what was stored."""
        memory = self._watcher.remembered.memory
        stored = decode(encode(Checkpoint(memory=memory)), FORMAT)
        self._watcher = self._start(Remembered(memory=stored.memory))

    def make(self, count: int = 1) -> list[Told]:
        """Make rounds, and return what they report."""
        for _ in range(count):
            view = self._watcher.make_round().view
            assert view is not None
            self.events += view.change_events
        return self.take()

    def until(self, kind: str) -> list[Told]:
        """Make rounds until one reports a change of a kind, and one more; return all that they report."""

        def is_reported() -> bool:
            view = self._watcher.make_round().view
            self.events += () if view is None else view.change_events
            return any(event.kind == kind for event in self.events)

        assert wait_until(is_reported, timeout_seconds=PATIENCE_SECONDS, poll_seconds=0.2), kind
        return self.make()

    def take(self) -> list[Told]:
        events, self.events = self.events, []
        assert all((event.since_us or 0) < event.seen_us for event in events)
        return [told(event) for event in events]

    def topic_id(self, topic: str) -> TopicId | None:
        memory = self._watcher.remembered.memory
        return None if memory is None else memory.partitions.id_of(topic)


def told(event: ChangeEvent) -> Told:
    """Return an event in short."""
    first = event.subjects[0]
    names = [
        str(each.topic or each.feature or f"broker {each.broker}")
        + ("" if each.partition is None else f"-{each.partition}")
        + (f" {each.setting}" if each.setting else "")
        for each in event.subjects
    ]
    before, after = (
        value if source is None else f"{value} ({source})"
        for value, source in (
            (first.before, first.before_source),
            (first.after, first.after_source),
        )
    )
    return event.kind.value, ", ".join(names), before, after


@pytest.fixture
def topic(new_name: Callable[[str], str]) -> str:
    return new_name("changed")


@pytest.fixture
def rounds(make_reader: MakeReader, monkeypatch: pytest.MonkeyPatch) -> Rounds:
    monkeypatch.setattr(configs, "MAX_AGE_SECONDS", 0.0)
    return Rounds(make_reader)


def add_partitions(cluster: Sandbox, topic: str, total: int) -> None:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for answer in client.create_partitions([NewPartitions(topic, total)]).values():
        answer.result()


def test_each_change_of_topics_is_reported_once_and_nothing_else(
    cluster: Sandbox, admin: SandboxAdmin, rounds: Rounds, topic: str
) -> None:
    assert rounds.make(3) == [], "nothing changed"

    admin.create_topic(topic, partitions=2)
    assert rounds.until("topic_created") == [("topic_created", topic, None, "2 partitions")]

    add_partitions(cluster, topic, 3)
    assert rounds.until("partitions_added") == [("partitions_added", topic, "2", "3")]

    admin.set_topic_config(topic, {"retention.ms": "60000"})
    changed = ("setting_changed", f"{topic} retention.ms", "604800000 (default)", "60000 (topic)")
    assert rounds.until("setting_changed") == [changed]

    first_id = rounds.topic_id(topic)
    admin.delete_topic(topic)
    admin.create_topic(topic, partitions=1)
    again = rounds.until("topic_recreated")
    assert again == [("topic_recreated", topic, first_id, rounds.topic_id(topic))]

    rounds.restart()
    assert rounds.make(2) == [], "another process knows what the one before knew"
    rounds.restart()
    add_partitions(cluster, topic, 2)
    assert rounds.until("partitions_added") == [("partitions_added", topic, "1", "2")]

    admin.delete_topic(topic)
    assert rounds.until("topic_deleted") == [("topic_deleted", topic, "2 partitions", None)]
    assert rounds.make(3) == []


def test_settings_of_brokers_and_feature_levels_are_reported(
    cluster: Sandbox, admin: SandboxAdmin, rounds: Rounds
) -> None:
    assert rounds.make(2) == []
    admin.set_broker_config(1, {"message.max.bytes": "2000000"})
    own = ("1048588 (default)", "2000000 (dynamic_broker)")
    one = ("setting_changed", "broker 1 message.max.bytes", *own)
    assert rounds.until("setting_changed") == [one]
    admin.set_broker_config(1, {"message.max.bytes": None})
    assert rounds.until("setting_changed") == [(*one[:2], *own[::-1])]

    set_level(cluster, "downgrade", 1)
    lowered = ("feature_level_lowered", "transaction.version", "2", "1")
    assert rounds.until("feature_level_lowered") == [lowered]
    set_level(cluster, "upgrade", 2)
    raised = ("feature_level_raised", "transaction.version", "1", "2")
    assert rounds.until("feature_level_raised") == [raised]


def set_level(cluster: Sandbox, step: str, level: int) -> None:
    run_quietly(cluster, "kafka-features.sh", [step, "--feature", f"transaction.version={level}"])


@SCRAM_USERS
def test_a_permission_that_was_lost_is_no_deletion(
    cluster: Sandbox,
    admin: SandboxAdmin,
    make_reader: MakeReader,
    monkeypatch: pytest.MonkeyPatch,
    topic: str,
) -> None:
    monkeypatch.setattr(configs, "MAX_AGE_SECONDS", 0.0)
    user = admin.create_user("changes-reader", "secret-of-changes")
    permission = Permission(user=user.name, operation="describe", resource="topic", name=topic)
    admin.create_topic(topic)
    admin.grant([permission])

    def reader() -> ClusterReader:
        return make_reader(
            bootstrap_servers=cluster.sasl_bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_username=user.name,
            sasl_password=user.password,
        )

    rounds = Rounds(reader)
    assert rounds.make(2) == []
    admin.revoke([permission])
    assert rounds.until("topic_hidden") == [("topic_hidden", topic, "1 partition", None)]
    admin.grant([permission])

    def is_listed() -> bool:
        assert rounds.make() == [], "it is the same topic"
        return rounds.topic_id(topic) is not None

    assert wait_until(is_listed, timeout_seconds=PATIENCE_SECONDS)


@pytest.fixture
def plan(tmp_path: Path) -> Callable[[str, Sequence[int]], str]:
    """Write what `kafka-reassign-partitions.sh` takes: the replicas of a topic's partition 0."""

    def write(topic: str, replicas: Sequence[int]) -> str:
        path = tmp_path / "plan.json"
        each = {"topic": topic, "partition": 0, "replicas": list(replicas)}
        path.write_text(json.dumps({"version": 1, "partitions": [each]}), encoding="utf-8")
        return str(path)

    return write


def test_reassignments_and_brokers_that_leave_are_reported_where_they_begin_and_end(
    faults: Sandbox, rounds: Rounds, topic: str, plan: Callable[[str, Sequence[int]], str]
) -> None:
    servers = faults.bootstrap_servers
    SandboxAdmin(servers).create_topic(topic, assignment=[[1, 2]])
    produce(servers, topic, RECORDS, value=RECORD)
    assert rounds.make(2) == []

    def reassign(replicas: Sequence[int], *options: str) -> None:
        arguments = ["--reassignment-json-file", plan(topic, replicas), *options]
        run_quietly(faults, "kafka-reassign-partitions.sh", arguments)

    name = f"{topic}-0"
    reassign([1, 3], "--execute", "--throttle", str(THROTTLE))
    began = rounds.until("reassignment_began")
    assert [(kind, subject, before) for kind, subject, before, _ in began] == [
        ("reassignment_began", name, "1,2")
    ]
    in_progress = began[0][3]
    assert rounds.make(2) == [], "one event, and not one a round"
    reassign([1, 3], "--cancel")
    assert rounds.until("reassignment_cancelled") == [
        ("reassignment_cancelled", name, in_progress, "1,2")
    ]
    reassign([3, 1], "--execute")
    *others, ended = rounds.until("replicas_reassigned")
    assert ended == ("replicas_reassigned", name, "1,2", "3,1")
    assert {kind for kind, *_ in others} <= {"reassignment_began"}

    address = faults.broker_address(STOPPED)
    faults.kill(STOPPED)
    left = ("broker_left", f"broker {STOPPED}", address, None)
    assert rounds.until("broker_left") == [left]
    faults.start(STOPPED)
    joined = ("broker_joined", f"broker {STOPPED}", None, address)
    assert rounds.until("broker_joined") == [joined], "without its log no restart is proven"


def test_the_log_of_a_broker_proves_that_it_restarted(
    faults: Sandbox, make_reader: MakeReader
) -> None:
    source = {"path": str(faults.log_directory(STOPPED) / "*.log"), "broker_id": STOPPED}
    feed = log_files(BrokerLogSettings.model_validate({"files": [{**source, "name": "broker"}]}))
    rounds = Rounds(make_reader, [feed])
    assert rounds.make(3) == [], "its first start is in the log, and no change"
    began = utc_now()
    faults.kill(STOPPED)
    faults.start(STOPPED)
    seen = rounds.until("broker_restarted")
    [(_, subject, before, after)] = [each for each in seen if each[0] == "broker_restarted"]
    assert (subject, before) == (f"broker {STOPPED}", None)
    assert after is not None
    started = datetime.fromisoformat(after.removeprefix("started "))
    assert began - timedelta(seconds=1) <= started <= utc_now()
    assert {kind for kind, *_ in seen} <= {"broker_restarted", "broker_left", "broker_joined"}
